SELECT sales.customer, names.name
FROM {{ ref('sales') }} AS sales
JOIN (SELECT id AS customer, md5(string(id)) AS name FROM range(100)) AS names USING (customer)
