"""The table of capabilities agrees with the code."""

import capabilities


def test_the_page_is_made_from_the_code():
    assert capabilities.PAGE.read_text() == capabilities.page()


def test_a_link_stands_only_where_an_estimator_lacks_something():
    table = capabilities.table()
    for name, instead in capabilities.INSTEAD.items():
        assert [kind.__name__ for kind in instead if table[name][kind]] == []
