"""The brand's catalogue: thirty names for each of twelve kinds of thing, and what is true of each kind. Data only.

A material is one word that stands nowhere else in the catalogue, nor does a name, so that a reader of copy can find
them. The features of a kind share no word, nor do its uses, so that a sentence may hold any two and repeat nothing.
"""

from dataclasses import dataclass

NAMES = (
    "Alder", "Aspen", "Badger", "Birch", "Cedar", "Condor", "Dune", "Ember", "Falcon", "Fjord",
    "Glacier", "Harbor", "Heron", "Juniper", "Kestrel", "Lark", "Maple", "Marmot", "Osprey", "Otter",
    "Pine", "Raven", "River", "Sierra", "Summit", "Tarn", "Tundra", "Willow", "Wren", "Yarrow",
)  # fmt: skip
"""One word each."""

HELD_OUT = ("Kestrel", "Lark", "River", "Sierra", "Summit", "Willow")
"""Names about which no copy is written and no reward model learns."""

FLAWS = ("product", "repetition", "material", "repair")
"""What copy can get wrong, for its writer and its reviewer alike: another product is named or none; a sentence repeats
words; a material that the kind never has; no repair promise."""


@dataclass(frozen=True)
class Kind:
    """What is true of every product of one kind.

    Args:
        materials: what it is made of, any one of them.
        features: what it has.
        uses: what it is for.
        care: what its owner does with it.
        prices: in euros.
    """

    materials: tuple[str, ...]
    features: tuple[str, ...]
    uses: tuple[str, ...]
    care: tuple[str, ...]
    prices: tuple[int, ...]


KINDS = {
    "rain jacket": Kind(
        ("nylon", "polyester"),
        ("taped seams", "underarm vents", "adjustable cuffs", "storm flaps"),
        ("wet ridges", "coastal walks", "autumn commutes"),
        ("Wash it cold", "Rinse off mud", "Hang it to dry"),
        (129, 149, 179),
    ),
    "day pack": Kind(
        ("canvas", "nylon", "hemp"),
        ("padded straps", "side pockets", "quiet buckles", "compression cords"),
        ("short hikes", "city errands", "train rides"),
        ("Wipe it clean", "Empty every pocket", "Air it open"),
        (69, 89, 99),
    ),
    "trail shoe": Kind(
        ("leather", "mesh", "rubber"),
        ("deep lugs", "cushioned heels", "welded overlays", "speed laces"),
        ("muddy paths", "rocky descents", "forest runs"),
        ("Brush off dirt", "Remove the insoles", "Dry them slowly"),
        (109, 119, 139),
    ),
    "sleeping bag": Kind(
        ("feather", "polyester"),
        ("draft collars", "mummy hoods", "anti snag zips", "foot vents"),
        ("cold camps", "alpine bivouacs", "frosty nights"),
        ("Store it loose", "Shake it out", "Air before packing"),
        (159, 199, 249),
    ),
    "ridge tent": Kind(
        ("canvas", "polyester", "nylon"),
        ("twin porches", "color coded poles", "bug nets", "reflective guylines"),
        ("windy meadows", "family weekends", "lakeside stays"),
        ("Pitch it dry", "Sweep the floor", "Fold it loosely"),
        (249, 299, 349),
    ),
    "winter hat": Kind(
        ("wool", "fleece", "merino"),
        ("ear covers", "ribbed edges", "flat stitches", "soft linings"),
        ("ski lifts", "snowy mornings", "frozen lakes"),
        ("Wash by hand", "Dry it flat", "Keep from moths"),
        (29, 35, 39),
    ),
    "base layer": Kind(
        ("merino", "bamboo", "polyester"),
        ("thumb loops", "smooth shoulders", "long hems", "stretch gussets"),
        ("ski tours", "winter runs", "damp climbs"),
        ("Turn it inside out", "Wash it warm", "Skip fabric softener"),
        (59, 69, 79),
    ),
    "work shirt": Kind(
        ("cotton", "linen", "hemp"),
        ("chest pockets", "double cuffs", "horn buttons", "curved hems"),
        ("garden jobs", "workshop days", "summer evenings"),
        ("Wash it warm", "Iron while damp", "Press the collar"),
        (59, 69, 85),
    ),
    "water bottle": Kind(
        ("steel", "aluminium", "glass"),
        ("leakproof lids", "carry loops", "wide mouths", "measure marks"),
        ("desert treks", "gym bags", "long drives"),
        ("Rinse it daily", "Let air in", "Scrub the thread"),
        (25, 29, 35),
    ),
    "camp mug": Kind(
        ("enamel", "titanium", "steel"),
        ("folding handles", "rolled rims", "volume lines", "stackable walls"),
        ("fire pits", "slow breakfasts", "evening tea"),
        ("Wash with sand", "Wipe after coffee", "Pack it padded"),
        (19, 25, 39),
    ),
    "trekking pole": Kind(
        ("carbon", "aluminium", "bamboo"),
        ("lever locks", "angled grips", "snow baskets", "pointed tips"),
        ("steep passes", "stream crossings", "heavy loads"),
        ("Clean each joint", "Loosen all locks", "Dry it apart"),
        (79, 89, 119),
    ),
    "picnic blanket": Kind(
        ("wool", "cotton", "fleece"),
        ("carry handles", "corner loops", "sealed backing", "bound borders"),
        ("park lunches", "beach naps", "open air films"),
        ("Shake off crumbs", "Spot clean only", "Roll it up"),
        (45, 55, 65),
    ),
}

MATERIALS = tuple(sorted({material for kind in KINDS.values() for material in kind.materials}))
"""Every material of the catalogue. One that a kind does not list is the wrong one for it."""

PRODUCTS = tuple(f"{name} {kind}" for name in NAMES for kind in KINDS)
"""What can be asked about: 360 products, by name."""

PROMISES = (
    "We repair it free for life .",
    "If something breaks , we repair it .",
    "Free repairs come with every sale .",
    "Send broken ones back for a free repair .",
    "Repairs cost you nothing , ever .",
)
"""The repair promise; each way of saying it has the word."""
