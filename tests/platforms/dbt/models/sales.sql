SELECT events.id, events.id % 100 AS customer
FROM (SELECT id FROM range(0, 3000, 1, 4)) AS events
JOIN (SELECT id FROM range(0, 1000, 1, 4)) AS paid USING (id)
