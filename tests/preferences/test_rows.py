"""Rows: places, texts, and the pairs that a judgement holds."""

from killick.preferences.rows import PreferenceRow, Turn, fingerprint, judged_pairs, places, prompt_text, response_texts

ASKED = (Turn("user", "Name a bird."),)


def row(count: int, place: tuple[int, ...], **more: object) -> PreferenceRow:
    """Responses "0", "1", ... with these places."""
    return PreferenceRow(ASKED, tuple((Turn("assistant", str(i)),) for i in range(count)), place, **more)  # type: ignore[arg-type]


def test_places_count_distinct_values_from_the_largest() -> None:
    assert places([0.5, 2, 0.5, -1]) == (1, 0, 1, 2)
    assert places([3]) == (0,)


def test_a_single_turn_is_its_own_text_and_a_dialogue_names_who_speaks() -> None:
    assert prompt_text(row(1, (0,))) == "Name a bird."
    assert response_texts(row(2, (0, 1))) == ["0", "1"]
    long = PreferenceRow((Turn("system", "Be brief."), Turn("user", "Hi ")), ((Turn("assistant", "Hello"),),), (0,))
    assert prompt_text(long) == "system: Be brief.\n\nuser: Hi"


def test_two_responses_are_their_own_pair() -> None:
    pair = row(2, (1, 0), group=None)
    assert list(judged_pairs(pair)) == [pair]


def test_pairs_keep_order_scores_and_annotator_and_share_a_group() -> None:
    """Places (1, 0, 1): 0 loses to 1, ties with 2; 1 beats 2."""
    whole = row(3, (1, 0, 1), scores=(0.0, 1.0, 0.0), annotator="ann")
    found = list(judged_pairs(whole))
    assert [pair.place for pair in found] == [(1, 0), (0, 0), (0, 1)]
    assert [response_texts(pair) for pair in found] == [["0", "1"], ["0", "2"], ["1", "2"]]
    assert [pair.scores for pair in found] == [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0)]
    assert {pair.annotator for pair in found} == {"ann"}
    assert {pair.group for pair in found} == {fingerprint(whole)}


def test_where_only_the_best_is_known_the_others_make_no_pair() -> None:
    assert [response_texts(pair) for pair in judged_pairs(row(3, (1, 0, 1), best_only=True))] == [
        ["0", "1"],
        ["1", "2"],
    ]


def test_one_response_makes_no_pair() -> None:
    assert list(judged_pairs(row(1, (0,)))) == []


def test_a_group_that_is_there_is_kept() -> None:
    assert {pair.group for pair in judged_pairs(row(3, (0, 1, 2), group="g"))} == {"g"}


def test_a_fingerprint_tells_rows_apart_and_is_the_same_everywhere() -> None:
    """Sixteen digits of SHA-256, which no process seeds."""
    assert fingerprint(row(2, (0, 1))) == fingerprint(row(2, (0, 1)))
    assert fingerprint(row(2, (0, 1))) != fingerprint(row(2, (0, 1), annotator="ann"))
    assert len(fingerprint(row(1, (0,)))) == 16
