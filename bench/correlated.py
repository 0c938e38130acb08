"""A shop whose columns depend on each other, for which estimates are wrong by 10 to 1,000 times.

In the spirit of the Join Order Benchmark (Leis et al., VLDB 2015): an estimator that takes columns
for independent and values for evenly spread errs more with each join. What depends on what:

- a customer's country, segment and tier follow from the city, for nearly all;
- a product's category follows from its brand, its price class from its category;
- sales are of few customers and few products (shares fall by a power law), and the channel follows
  from the customer's segment;
- nearly all returns are of one brand in fifty, and one-star reviews are of the same brands;
- a product has one to thirty tags; those of many sales have most.

So a filter on two columns of one cause keeps what a filter on one keeps, and a filter on an unusual
pair keeps nothing. All is drawn by DuckDB from hashes: the same on each machine.
"""

from __future__ import annotations

from pathlib import Path

import generated

# Rows at scale factor 1.
SIZES = {
    "customer": 200_000,
    "product": 40_000,
    "sale": 5_000_000,
    "visit": 2_000_000,
    "review": 600_000,
}
CITIES, BRANDS, CATEGORIES, TAGS, DAYS = 2000, 2000, 100, 500, 1095


def files(scale: float) -> Path:
    """Returns the folder with one Parquet file for each table, generated at the first call."""
    return generated.folder(f"correlated-sf{scale:g}", lambda folder: _generate(scale, folder))


def day(scale: float, number: int) -> Path:
    """Returns the folder with the tables of a day, 0 to 8: each is drawn from another seed."""
    name = f"correlated-sf{scale:g}-2026-11-0{number + 1}"
    return generated.folder(name, lambda folder: _generate(scale, folder, number))


def _generate(scale: float, folder: Path, seed: int = 0) -> None:
    import duckdb

    drawn = f"hash(i * 1000 + salt + {seed} * 1000000000000)"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE MACRO u(i, salt) AS ({drawn} % 1000000007) / 1e9")
        for table, query in _tables(scale).items():
            connection.execute(f"CREATE TABLE {table} AS {query}")
            connection.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet)")


def _tables(scale: float) -> dict[str, str]:
    rows = {table: max(100, int(size * scale)) for table, size in SIZES.items()}
    customers, products = rows["customer"], rows["product"]
    return {
        "country": "SELECT i AS co_id, 'country ' || i AS co_name, i % 4 AS co_region "
        "FROM range(20) t(i)",
        "city": "SELECT i AS ci_id, 'city ' || i AS ci_name, "
        f"cast(floor(20 * u(i, 1) * u(i, 1)) AS INT) AS ci_country FROM range({CITIES}) t(i)",
        "brand": "SELECT i AS b_id, 'brand ' || i AS b_name, "
        f"i % {CATEGORIES} AS b_category, i % 7 AS b_owner FROM range({BRANDS}) t(i)",
        "category": "SELECT i AS ca_id, 'category ' || i AS ca_name, i % 10 AS ca_group "
        f"FROM range({CATEGORIES}) t(i)",
        "tag": f"SELECT i AS t_id, 'tag ' || i AS t_name FROM range({TAGS}) t(i)",
        "customer": f"""
            SELECT c_id, c_city, ci_country AS c_country,
              CASE WHEN u(c_id, 3) < 0.95 THEN c_city % 5
                ELSE cast(floor(5 * u(c_id, 4)) AS INT) END AS c_segment,
              CASE WHEN u(c_id, 5) < 0.97 THEN CASE WHEN c_city % 5 = 3 THEN 'gold' ELSE 'base' END
                ELSE 'gold' END AS c_tier
            FROM (SELECT i AS c_id, cast(floor({CITIES} * pow(u(i, 2), 3)) AS INT) AS c_city
              FROM range({customers}) t(i)) JOIN city ON c_city = ci_id""",
        "product": f"""
            SELECT p_id, p_brand, p_brand % {CATEGORIES} AS p_category,
              CASE WHEN u(p_id, 7) < 0.95 THEN p_brand % 4
                ELSE cast(floor(4 * u(p_id, 8)) AS INT) END AS p_price_class,
              cast(floor(20 * pow(u(p_id, 9), 2)) AS INT) AS p_colour
            FROM (SELECT i AS p_id, cast(floor({BRANDS} * pow(u(i, 6), 2)) AS INT) AS p_brand
              FROM range({products}) t(i))""",
        "product_tag": f"""
            SELECT p_id AS pt_product,
              cast(floor({TAGS} * pow(u(p_id * 31 + n, 10), 2)) AS INT) AS pt_tag
            FROM product, LATERAL (SELECT unnest(range(CASE WHEN p_id < {products // 50}
              THEN 30 ELSE 1 + p_id % 3 END)) AS n)""",
        "sale": f"""
            SELECT s_id, s_customer, s_product, s_day, s_quantity,
              CASE WHEN u(s_id, 14) < 0.9 THEN c_segment % 3
                ELSE cast(floor(3 * u(s_id, 15)) AS INT) END AS s_channel
            FROM (SELECT i AS s_id,
                cast(floor({customers} * pow(u(i, 11), 2)) AS INT) AS s_customer,
                cast(floor({products} * pow(u(i, 12), 3)) AS INT) AS s_product,
                cast(floor({DAYS} * u(i, 13)) AS INT) AS s_day, 1 + i % 9 AS s_quantity
              FROM range({rows["sale"]}) t(i)) JOIN customer ON s_customer = c_id""",
        "returned": """
            SELECT s_id AS r_sale, s_product AS r_product, s_day + 1 + s_id % 30 AS r_day,
              CASE WHEN p_brand % 50 = 7 THEN 'broken' ELSE 'other' END AS r_reason
            FROM sale JOIN product ON s_product = p_id
            WHERE u(s_id, 16) < CASE WHEN p_brand % 50 = 7 THEN 0.6 ELSE 0.004 END""",
        "visit": f"""
            SELECT i AS v_id, cast(floor({customers} * pow(u(i, 17), 2)) AS INT) AS v_customer,
              cast(floor({products} * pow(u(i, 18), 3)) AS INT) AS v_product,
              cast(floor({DAYS} * u(i, 19)) AS INT) AS v_day
            FROM range({rows["visit"]}) t(i)""",
        "review": f"""
            SELECT re_id, re_product, CASE WHEN p_brand % 50 = 7 AND u(re_id, 21) < 0.8 THEN 1
              ELSE 2 + re_id % 4 END AS re_stars
            FROM (SELECT i AS re_id, cast(floor({products} * pow(u(i, 20), 3)) AS INT) AS re_product
              FROM range({rows["review"]}) t(i)) JOIN product ON re_product = p_id""",
    }


# Each template with its conditions: pairs of one cause, unusual pairs, and single ones.
_TEMPLATES = {
    "buyers": (
        """SELECT count(*), sum(s_quantity) FROM sale, product, brand, category, customer, city,
          country
        WHERE s_product = p_id AND p_brand = b_id AND p_category = ca_id AND s_customer = c_id
          AND c_city = ci_id AND ci_country = co_id AND {}""",
        (
            "b_id = 57 AND ca_id = 57",
            "b_id % 50 = 7 AND ca_group = 7 AND co_id = 0",
            "c_segment = 3 AND c_tier = 'gold' AND ca_id = 3",
            "c_segment = 2 AND c_tier = 'gold' AND b_owner = 1",
            "co_region = 3 AND ci_id % 5 = 3 AND c_segment = 3 AND p_price_class = 1",
            "ca_id = 8 AND p_price_class = 0 AND p_colour = 0 AND s_channel = 1",
        ),
    ),
    "returns": (
        """SELECT count(*), sum(s_quantity) FROM sale, returned, product, brand, customer, city
        WHERE r_sale = s_id AND s_product = p_id AND p_brand = b_id AND s_customer = c_id
          AND c_city = ci_id AND {}""",
        (
            "b_id % 50 = 7 AND r_reason = 'broken'",
            "b_id % 50 = 8 AND r_reason = 'broken'",
            "r_reason = 'other' AND b_id % 50 = 7",
            "b_id = 107 AND p_category = 7 AND c_tier = 'gold'",
            "ci_country = 19 AND r_reason = 'broken'",
            "p_price_class = 3 AND p_category = 7 AND s_channel = 2",
        ),
    ),
    "complaints": (
        """SELECT count(*) FROM review, product, brand, returned, sale, customer
        WHERE re_product = p_id AND p_brand = b_id AND r_product = p_id AND r_sale = s_id
          AND s_customer = c_id AND {}""",
        (
            "re_stars = 1 AND r_reason = 'broken' AND b_id = 1907",
            "re_stars = 1 AND r_reason = 'other' AND b_owner = 2",
            "re_stars = 5 AND b_id = 1957",
            "re_stars = 1 AND p_category = 57 AND p_price_class = 3 AND c_segment = 1",
            "re_stars = 1 AND p_category = 58 AND p_price_class = 2",
            "re_stars = 2 AND b_id = 1807 AND c_tier = 'gold' AND c_segment = 3",
        ),
    ),
    "tags": (
        """SELECT count(*), sum(s_quantity) FROM tag, product_tag, product, brand, sale, customer
        WHERE pt_tag = t_id AND pt_product = p_id AND p_brand = b_id AND s_product = p_id
          AND s_customer = c_id AND {}""",
        (
            "t_id = 450 AND b_id % 10 = 1",
            "t_id < 5 AND p_id < 10",
            "t_id = 3 AND p_category = 12 AND p_price_class = 0",
            "t_id BETWEEN 400 AND 410 AND c_segment = 3 AND c_tier = 'gold'",
            "t_id = 0 AND c_country = 18",
            "t_id > 490 AND s_channel = 2 AND c_segment = 2",
        ),
    ),
    "visitors": (
        """SELECT count(*), max(s_quantity) FROM visit, sale, customer, city, country, product,
          category
        WHERE v_customer = c_id AND s_customer = c_id AND c_city = ci_id AND ci_country = co_id
          AND s_product = p_id AND p_category = ca_id AND v_product = s_product AND {}""",
        (
            "ci_id = 3 AND c_segment = 3",
            "ci_id = 1500 AND c_segment = 0 AND ca_group = 2",
            "co_id = 15 AND c_tier = 'gold' AND c_segment = 3",
            "ca_id = 99 AND p_price_class = 3",
            "v_day < 30 AND s_day < 30 AND ca_group = 4 AND c_segment = 4",
            "c_segment = 1 AND s_channel = 0 AND ca_id = 13",
        ),
    ),
    "loyalty": (
        """SELECT c_country, count(*) FROM customer, sale, returned, product, category
        WHERE s_customer = c_id AND r_sale = s_id AND s_product = p_id AND p_category = ca_id
          AND {} GROUP BY c_country""",
        (
            "c_city % 5 = 3 AND c_segment = 3 AND c_tier = 'gold'",
            "c_city % 5 = 3 AND c_segment = 1 AND r_reason = 'broken'",
            "c_city = 0 AND ca_id = 7",
            "c_city > 1900 AND ca_group = 7 AND r_reason = 'broken'",
            "ca_id = 21 AND p_price_class = 1 AND c_tier = 'base'",
            "ca_id = 21 AND p_price_class = 2 AND s_channel = 1",
        ),
    ),
    "chain": (
        """SELECT count(*) FROM country, city, customer, sale, product, product_tag, tag, brand
        WHERE ci_country = co_id AND c_city = ci_id AND s_customer = c_id AND s_product = p_id
          AND pt_product = p_id AND pt_tag = t_id AND p_brand = b_id AND {}""",
        (
            "co_id = 0 AND t_id = 499",
            "co_region = 2 AND b_id = 1999 AND p_category = 99",
            "co_id = 17 AND c_segment = 3 AND c_tier = 'gold'",
            "b_id % 100 = 33 AND p_category = 33 AND p_price_class = 1 AND co_id < 3",
            "b_id % 100 = 33 AND p_category = 34",
            "t_id < 20 AND ci_id > 1990",
        ),
    ),
}


def queries() -> dict[str, str]:
    """Returns the queries by name.

    >>> len(queries()) >= 40
    True
    """
    return {
        f"{name} {number}": template.format(condition)
        for name, (template, conditions) in _TEMPLATES.items()
        for number, condition in enumerate(conditions, 1)
    }
