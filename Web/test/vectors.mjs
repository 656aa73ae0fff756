// Decodes values encoded by Swift with the codecs generated from their Swift types, and encodes them again.
// Without imports of Node, so that a page can run it too.

/** The value of a description. */
function described(value) {
    if (Array.isArray(value)) return value.map(described)
    if (!value || typeof value !== "object") return value
    switch (value.type) {
        case "Date":
            return new Date(value.milliseconds)
        case "Data":
            return Uint8Array.from(value.bytes)
        case "bigint":
            return BigInt(value.text)
        case "Map":
            return new Map(value.entries.map(([key, each]) => [described(key), described(each)]))
        default:
            return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, described(each)]))
    }
}

/** Returns whether two values are equal, types included. */
function isEqual(one, other) {
    if (Object.is(one, other)) return true
    if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false
    if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false
    if (one instanceof Date) return one.getTime() === other.getTime()
    if (one instanceof Map) return isEqual([...one], [...other])
    const names = Object.keys(one)
    return (
        names.length === Object.keys(other).length &&
        names.every((name) => Object.hasOwn(other, name) && isEqual(one[name], other[name]))
    )
}

function text(value) {
    return JSON.stringify(value, (_, each) =>
        typeof each === "bigint" ? `${each}n` : each instanceof Map ? { map: [...each] } : each
    )
}

/** JSON with the digits of its numbers, and with members of objects sorted by name. */
function normal(json) {
    const marked = json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
        token[0] === '"' ? token : `{"a number":"${Number.isSafeInteger(Number(token)) ? Number(token) : token}"}`
    )
    return JSON.stringify(JSON.parse(marked), (_, value) =>
        value && typeof value === "object" && !Array.isArray(value)
            ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
            : value
    )
}

/**
 * Returns the differences, one line each.
 *
 * @param rows of values.json
 * @param Vectors the generated type
 * @param exact the coder that keeps numbers
 */
export function problems(rows, Vectors, exact) {
    const found = []
    for (const row of rows) {
        const info = Vectors.methods[row.method]
        if (!info) {
            found.push(`${row.method}: no such method`)
            continue
        }
        const plain = { read: (json) => json, write: (value) => value }
        const result = info.result ?? plain
        const argument = info.arguments?.[0] ?? plain
        try {
            const value = result.read(exact.parse(row.json))
            const expected = described(row.value)
            if (!isEqual(value, expected)) found.push(`${row.method}: read ${text(value)} instead of ${text(expected)}`)
            const json = exact.stringify(argument.write(expected))
            if (normal(json) !== normal(row.json)) found.push(`${row.method}: wrote ${json} instead of ${row.json}`)
        } catch (error) {
            found.push(`${row.method}: ${row.json}: ${error?.stack ?? error}`)
        }
    }
    return found
}
