import assert from "node:assert/strict"
import { test } from "node:test"
import { array, bigint, data, date, decimal, lazy, map, nullable, record, struct, union } from "../dist/trebuchet.js"
import { exact } from "../dist/trebuchet-exact.js"

const when = "2026-01-02T03:04:05.678Z"
const tree = struct({ when: date, children: lazy(() => array(tree)) })

// The codec, the JSON, the decoded value.
const table = [
    ["Date", date, when, new Date(when)],
    ["Date with a fraction of whole seconds", date, "2026-01-02T03:04:05.000Z", new Date(Date.UTC(2026, 0, 2, 3, 4, 5))],
    ["Data", data, "AAH+/w==", Uint8Array.of(0, 1, 254, 255)],
    ["empty Data", data, "", new Uint8Array()],
    ["Int64", bigint, 12, 12n],
    ["Decimal", decimal, 1.25, "1.25"],
    ["array", array(date), [when], [new Date(when)]],
    ["record", record(date), { a: when, __proto__x: when }, { a: new Date(when), __proto__x: new Date(when) }],
    ["map", map(undefined, date), ["a", when, "b", when], new Map([["a", new Date(when)], ["b", new Date(when)]])],
    ["map of keys", map(date), [when, 1], new Map([[new Date(when), 1]])],
    ["struct", struct({ when: date }), { when, other: 1 }, { when: new Date(when), other: 1 }],
    ["struct without an optional member", struct({ when: date }), { other: 1 }, { other: 1 }],
    ["struct with a member that is null", struct({ when: date }), { when: null }, { when: null }],
    ["enum with values", union({ load: struct({ at: date }) }), { load: { at: when } }, { load: { at: new Date(when) } }],
    ["unlabelled value", union({ load: struct({ _0: date }) }), { load: { _0: when } }, { load: { _0: new Date(when) } }],
    ["unknown case", union({ load: struct({ at: date }) }), { save: { at: when } }, { save: { at: when } }],
    ["a case that is called as a member of all objects", union({ load: date }), { constructor: { a: 1 } }, { constructor: { a: 1 } }],
    ["nullable", nullable(date), null, null],
    ["nullable in an array", array(nullable(date)), [null, when], [null, new Date(when)]],
    ["a type that contains itself", tree, { when, children: [{ when, children: [] }] }, { when: new Date(when), children: [{ when: new Date(when), children: [] }] }],
]

for (const [name, codec, json, value] of table) {
    test(`codec: ${name}`, () => {
        assert.deepEqual(codec.read(json), value)
        assert.deepEqual(codec.write(value), json)
    })
}

test("equal JSON decodes to the same object", () => {
    const one = { when }
    const codec = array(struct({ when: date }))
    const [first] = codec.read([one, { when }])
    const [, second] = codec.read([{ when }, one])
    assert.equal(first, second)
})

test("a part has the codec of its path", () => {
    const codec = struct({ list: array(struct({ when: date })), named: record(nullable(date)), pairs: map(undefined, date) })
    const at = (...names) => names.reduce((part, name) => part?.part?.(name), codec)
    assert.deepEqual(at("list", "0", "when")?.read(when), new Date(when))
    assert.deepEqual(at("named", "x")?.read(when), new Date(when))
    assert.deepEqual(at("pairs", "1")?.read(when), new Date(when))
    assert.equal(at("pairs", "0")?.read("key"), "key")
    assert.equal(at("other"), undefined)
    assert.equal(at("toString"), undefined)
    assert.equal(at("list", "0", "none"), undefined)
})

test("data of any length", () => {
    for (let length = 0; length < 300; length++) {
        const bytes = Uint8Array.from({ length }, (_, index) => (index * 37) % 256)
        assert.equal(data.write(bytes), Buffer.from(bytes).toString("base64"))
        assert.deepEqual(data.read(data.write(bytes)), bytes)
    }
})

// The text, and whether a double represents it exactly.
const numbers = [
    ["0", true], ["-0", true], ["1.10", true], ["9007199254740992", true], ["9007199254740993", false], ["-9223372036854775808", false],
    ["9223372036854775807", false], ["18446744073709551615", false], ["0.1", true], ["0.30000000000000004", true],
    ["3.14159265358979323846", false], ["1e400", false], ["1E+2", true], ["1.7976931348623157e308", true], ["100000000000000000000000", true],
]

for (const [text, fits] of numbers) {
    test(`exact: ${text}`, () => {
        for (const wrap of [(each) => each, (each) => `{"a":[${each},"${each}"]}`]) {
            const value = exact.parse(wrap(text))
            const inner = wrap("x") === "x" ? value : value.a[0]
            assert.equal(typeof inner, fits ? "number" : "object")
            if (fits) assert.equal(inner, JSON.parse(text))
            else {
                assert.equal(String(inner), text)
                assert.equal(exact.stringify(value), wrap(text))
                // Code that does not know exact numbers must not write another number.
                assert.throws(() => JSON.stringify(value))
            }
        }
    })
}

test("exact: bigint and Decimal round trip", () => {
    const codec = struct({ id: bigint, price: decimal })
    const text = '{"id":9223372036854775807,"price":12345678901234567890.0123456789}'
    const value = codec.read(exact.parse(text))
    assert.deepEqual(value, { id: 9223372036854775807n, price: "12345678901234567890.0123456789" })
    assert.equal(exact.stringify(codec.write(value)), text)
    assert.equal(exact.stringify(codec.write({ id: 5n, price: "1.50" })), '{"id":5,"price":1.5}')
    assert.equal(JSON.stringify(codec.write({ id: 5n, price: "1.50" })), '{"id":5,"price":1.5}')
    assert.throws(() => JSON.stringify(codec.write({ id: 1n << 62n })))
    assert.throws(() => exact.stringify(codec.write({ price: '1,"admin":true,"x":12345678901234567890' })))
})

test("exact: invalid JSON is an error", () => {
    for (const text of ["", "{", "01234567890123456789", '{"a":12345678901234567890.}', "1e4000e", "+12345678901234567890", '"\u0000' + "1".repeat(20) + '"']) {
        assert.throws(() => exact.parse(text), SyntaxError, text)
    }
})

test("exact: strings are unchanged", () => {
    const value = { a: "9007199254740993", 'b"\\': ["1e400", "\\", '"', "number0.5:1"], __proto__x: 1 }
    assert.deepEqual(exact.parse(JSON.stringify(value)), value)
    const text = JSON.stringify({ long: '\\\\"'.repeat(500_000), n: 1 }).replace(/1}$/, "9007199254740993}")
    assert.equal(String(exact.parse(text).n), "9007199254740993")
    assert.equal(exact.parse('{"__proto__":9007199254740993}').polluted, undefined)
})

test("a text that is not a number is refused as a Decimal", () => {
    for (const text of ["", " ", "12,50", "abc", "0x10", "1.", ".5", "NaN", "Infinity"]) assert.throws(() => decimal.write(text), TypeError, text)
    assert.deepEqual(["12.50", "-3", "1e3"].map(decimal.write), [12.5, -3, 1000])
    // JSON would write null.
    assert.equal(String(decimal.write("1e400")), "1e400")
})

test("a number with very many digits is decoded quickly", { timeout: 20_000 }, () => {
    const digits = "1" + "0".repeat(500_000) + "1"
    assert.equal(exact.parse(`[${digits}]`)[0].text, digits)
})

test("exact: a text with millions of escapes is decoded", () => {
    const text = "\n".repeat(9_000_000)
    const [read, number] = exact.parse(JSON.stringify([text + '"12345678901234567890', 0]).replace(/0\]$/, "12345678901234567890]"))
    assert.equal(read.length, text.length + 21)
    assert.equal(String(number), "12345678901234567890")
    assert.deepEqual(exact.parse('["\\\\",12345678901234567890]').map(String), ["\\", "12345678901234567890"])
    assert.equal(exact.parse('{"a\\"12345678901234567890":"12345678901234567890"}')['a"12345678901234567890'], "12345678901234567890")
})
