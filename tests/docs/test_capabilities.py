"""The table of what each estimator can do is that of the code."""

import capabilities


def test_the_page_is_made_from_the_code():
    assert capabilities.PAGE.read_text() == capabilities.page()


def test_every_hole_has_a_reason_and_every_reason_a_hole():
    holes = {
        (what, name) for what, found in capabilities.table().items() for name, can in found.items() if not can
    }
    assert holes == capabilities.REASONS.keys()
