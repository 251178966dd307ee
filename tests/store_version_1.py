"""A store as schema version 1 left it, written out in SQL: what an upgrade must take up without a loss."""

from sqlalchemy import Connection, text

TABLES = """
CREATE TABLE about (name VARCHAR NOT NULL PRIMARY KEY, value VARCHAR NOT NULL);
CREATE TABLE guidelines (version INTEGER NOT NULL PRIMARY KEY, text TEXT NOT NULL, at FLOAT NOT NULL);
CREATE TABLE annotators (id {serial} NOT NULL PRIMARY KEY, name VARCHAR NOT NULL UNIQUE, token VARCHAR NOT NULL UNIQUE,
    seed VARCHAR NOT NULL, at FLOAT NOT NULL);
CREATE TABLE items (id {serial} NOT NULL PRIMARY KEY, digest VARCHAR NOT NULL UNIQUE, kind VARCHAR NOT NULL,
    prompt TEXT NOT NULL, candidates TEXT NOT NULL, sources TEXT NOT NULL, scores TEXT NOT NULL,
    metadata TEXT NOT NULL, overlap INTEGER NOT NULL, at FLOAT NOT NULL,
    CONSTRAINT overlap_is_positive CHECK (overlap >= 1));
CREATE TABLE staged (batch VARCHAR NOT NULL, digest VARCHAR NOT NULL, place INTEGER NOT NULL, kind VARCHAR NOT NULL,
    prompt TEXT NOT NULL, candidates TEXT NOT NULL, sources TEXT NOT NULL, scores TEXT NOT NULL,
    metadata TEXT NOT NULL, overlap INTEGER NOT NULL, at FLOAT NOT NULL, PRIMARY KEY (batch, digest));
CREATE TABLE cards (item INTEGER NOT NULL REFERENCES items (id), annotator INTEGER NOT NULL REFERENCES annotators (id),
    until FLOAT NOT NULL, guidelines INTEGER NOT NULL, latest INTEGER NOT NULL, live BOOLEAN NOT NULL,
    PRIMARY KEY (item, annotator));
CREATE INDEX cards_of_annotator ON cards (annotator, live, item);
CREATE TABLE labels (id {serial} NOT NULL PRIMARY KEY, item INTEGER NOT NULL REFERENCES items (id),
    annotator INTEGER NOT NULL REFERENCES annotators (id), revision INTEGER NOT NULL, action VARCHAR NOT NULL,
    ranking TEXT NOT NULL, "order" TEXT NOT NULL, seconds FLOAT NOT NULL, strength INTEGER, note TEXT NOT NULL,
    flags TEXT NOT NULL, guidelines INTEGER NOT NULL, at FLOAT NOT NULL,
    CONSTRAINT one_label_a_revision UNIQUE (item, annotator, revision),
    CONSTRAINT known_action CHECK (action IN ('label', 'revise', 'withdraw')));
CREATE INDEX labels_of_annotator ON labels (annotator, id);
CREATE TABLE keys (annotator INTEGER NOT NULL REFERENCES annotators (id), key VARCHAR NOT NULL,
    label INTEGER NOT NULL REFERENCES labels (id), action VARCHAR NOT NULL, PRIMARY KEY (annotator, key));
"""

ROWS = """
INSERT INTO about VALUES ('schema', '1');
INSERT INTO guidelines VALUES (1, '"be kind"', 1000.0);
INSERT INTO annotators (name, token, seed, at) VALUES ('ada', '{token}', 's1', 1000.0), ('bob', 'b', 's2', 1000.0);
INSERT INTO items (digest, kind, prompt, candidates, sources, scores, metadata, overlap, at) VALUES
    ('d1', 'pair', '"p1"', '["a","b"]', '[]', '[]', '{{}}', 2, 1000.0),
    ('d2', 'pair', '"p2"', '["c","d"]', '["x","y"]', '[0.5,1]', '{{"n":1}}', 1, 1000.0),
    ('d3', 'ranking', '"p3"', '["e","f","g"]', '[]', '[]', '{{}}', 1, 1000.0);
INSERT INTO cards VALUES (1, 1, 0.0, 1, 1, true), (1, 2, 0.0, 1, 0, true), (2, 1, 0.0, 1, 1, false),
    (3, 1, 0.0, 1, 0, true);
INSERT INTO labels (item, annotator, revision, action, ranking, "order", seconds, strength, note, flags, guidelines, at)
VALUES (1, 1, 0, 'label', '[[0],[1]]', '[1,0]', 2.5, 2, '"n\\u0000"', '["odd"]', 1, 1001.0),
    (1, 1, 1, 'revise', '[[0,1]]', '[1,0]', 3.5, NULL, '""', '[]', 1, 1002.0),
    (1, 2, 0, 'label', '[[1],[0]]', '[0,1]', 1.5, NULL, '""', '[]', 1, 1003.0),
    (2, 1, 0, 'label', '[[0],[1]]', '[0,1]', 1.0, NULL, '""', '[]', 1, 1004.0),
    (2, 1, 1, 'withdraw', '[]', '[0,1]', 0.0, NULL, '""', '[]', 1, 1005.0),
    (3, 1, 0, 'label', '[]', '[2,1,0]', 9.0, NULL, '""', '[]', 1, 1006.0);
INSERT INTO keys VALUES (1, 'k1', 1, 'label'), (1, 'k2', 2, 'revise'), (2, 'k1', 3, 'label');
"""


def write(connection: Connection, *, token: str) -> None:
    """Two annotators; an edited label, one of another, a withdrawn one, and a skip of a ranking."""
    serial = "SERIAL" if connection.dialect.name == "postgresql" else "INTEGER"
    for statement in (TABLES.format(serial=serial) + ROWS.format(token=token)).split(";"):
        if statement.strip():
            connection.execute(text(statement.replace(":", r"\:")))
