import assert from "node:assert/strict"
import { test } from "node:test"
import { equal, member, unencodable, parsePath, share } from "../.build/json.js"
import { applyPatch } from "../.build/patch.js"

/** Deeply frozen, so that a change throws. */
function frozen(value) {
    if (typeof value === "object" && value) {
        for (const each of Object.values(value)) frozen(each)
        Object.freeze(value)
    }
    return value
}

const patched = (value, patch) => applyPatch(frozen(value), frozen(patch))

// RFC 6902, appendix A: name, document, patch, result; no result for a patch that fails.
const appendix = [
    ["A.1 adding an object member", { foo: "bar" }, [{ op: "add", path: "/baz", value: "qux" }], { baz: "qux", foo: "bar" }],
    ["A.2 adding an array element", { foo: ["bar", "baz"] }, [{ op: "add", path: "/foo/1", value: "qux" }], { foo: ["bar", "qux", "baz"] }],
    ["A.3 removing an object member", { baz: "qux", foo: "bar" }, [{ op: "remove", path: "/baz" }], { foo: "bar" }],
    ["A.4 removing an array element", { foo: ["bar", "qux", "baz"] }, [{ op: "remove", path: "/foo/1" }], { foo: ["bar", "baz"] }],
    ["A.5 replacing a value", { baz: "qux", foo: "bar" }, [{ op: "replace", path: "/baz", value: "boo" }], { baz: "boo", foo: "bar" }],
    [
        "A.6 moving a value",
        { foo: { bar: "baz", waldo: "fred" }, qux: { corge: "grault" } },
        [{ op: "move", from: "/foo/waldo", path: "/qux/thud" }],
        { foo: { bar: "baz" }, qux: { corge: "grault", thud: "fred" } },
    ],
    ["A.7 moving an array element", { foo: ["all", "grass", "cows", "eat"] }, [{ op: "move", from: "/foo/1", path: "/foo/3" }], { foo: ["all", "cows", "eat", "grass"] }],
    [
        "A.8 testing a value, success",
        { baz: "qux", foo: ["a", 2, "c"] },
        [{ op: "test", path: "/baz", value: "qux" }, { op: "test", path: "/foo/1", value: 2 }],
        { baz: "qux", foo: ["a", 2, "c"] },
    ],
    ["A.9 testing a value, error", { baz: "qux" }, [{ op: "test", path: "/baz", value: "bar" }]],
    ["A.10 adding a nested member object", { foo: "bar" }, [{ op: "add", path: "/child", value: { grandchild: {} } }], { foo: "bar", child: { grandchild: {} } }],
    ["A.11 ignoring unrecognized elements", { foo: "bar" }, [{ op: "add", path: "/baz", value: "qux", xyz: 123 }], { foo: "bar", baz: "qux" }],
    ["A.12 adding to a nonexistent target", { foo: "bar" }, [{ op: "add", path: "/baz/bat", value: "qux" }]],
    ["A.14 escape ordering", { "/": 9, "~1": 10 }, [{ op: "test", path: "/~01", value: 10 }], { "/": 9, "~1": 10 }],
    ["A.15 comparing strings and numbers", { "/": 9, "~1": 10 }, [{ op: "test", path: "/~01", value: "10" }]],
    ["A.16 adding an array value", { foo: ["bar"] }, [{ op: "add", path: "/foo/-", value: ["abc", "def"] }], { foo: ["bar", ["abc", "def"]] }],
]

const more = [
    ["the whole value", { a: 1 }, [{ op: "replace", path: "", value: [1] }], [1]],
    ["the whole value, twice", { a: 1 }, [{ op: "add", path: "", value: { b: {} } }, { op: "add", path: "/b/c", value: 1 }], { b: { c: 1 } }],
    ["null is a value", { a: 1 }, [{ op: "replace", path: "/a", value: null }], { a: null }],
    ["a member that is null", { a: null }, [{ op: "remove", path: "/a" }], {}],
    ["an empty name", { "": 1 }, [{ op: "replace", path: "/", value: 2 }], { "": 2 }],
    ["copies are apart", { a: { n: 1 } }, [{ op: "copy", from: "/a", path: "/b" }, { op: "replace", path: "/b/n", value: 2 }], { a: { n: 1 }, b: { n: 2 } }],
    [
        "copies of what the patch has made are apart",
        { a: { n: 1 } },
        [{ op: "replace", path: "/a/n", value: 2 }, { op: "copy", from: "/a", path: "/b" }, { op: "replace", path: "/b/n", value: 3 }],
        { a: { n: 2 }, b: { n: 3 } },
    ],
    ["a value of the patch, changed by it", {}, [{ op: "add", path: "/a", value: [] }, { op: "add", path: "/a/0", value: 1 }], { a: [1] }],
    ["moved over its neighbour", ["a", "b"], [{ op: "move", from: "/1", path: "/0" }], ["b", "a"]],
    ["moved to where it is", { a: 1 }, [{ op: "move", from: "/a", path: "/a" }], { a: 1 }],
    ["a test of objects minds no order", { a: { x: 1, y: [2] } }, [{ op: "test", path: "/a", value: { y: [2], x: 1 } }], { a: { x: 1, y: [2] } }],
    ["add at the end by number", [1], [{ op: "add", path: "/1", value: 2 }], [1, 2]],
    ["add behind the end", [1], [{ op: "add", path: "/2", value: 2 }]],
    ["replace at the end", [1], [{ op: "replace", path: "/1", value: 2 }]],
    ["replace at -", [1], [{ op: "replace", path: "/-", value: 2 }]],
    ["remove at -", [1], [{ op: "remove", path: "/-" }]],
    ["an index with a zero before it", [1, 2], [{ op: "remove", path: "/01" }]],
    ["a negative index", [1, 2], [{ op: "remove", path: "/-1" }]],
    ["the length of an array is no element", [1, 2], [{ op: "replace", path: "/length", value: 0 }]],
    ["a method of an array is no element", [1, 2], [{ op: "add", path: "/push/x", value: 0 }]],
    ["a member that is not there", { a: 1 }, [{ op: "replace", path: "/b", value: 2 }]],
    ["a member of all objects", {}, [{ op: "remove", path: "/constructor" }]],
    ["through a member of all objects", {}, [{ op: "add", path: "/constructor/x", value: 1 }]],
    ["a number has no members", { a: 1 }, [{ op: "add", path: "/a/b", value: 2 }]],
    ["the whole value cannot be removed", { a: 1 }, [{ op: "remove", path: "" }]],
    ["into itself", { a: { b: 1 } }, [{ op: "move", from: "/a", path: "/a/c" }]],
    ["into itself, where another element takes its place", [[1], [2]], [{ op: "move", from: "/0", path: "/0/0" }]],
    ["from nowhere", { a: 1 }, [{ op: "move", path: "/b" }]],
    ["without a value", { a: 1 }, [{ op: "add", path: "/b" }]],
    ["without a path", { a: 1 }, [{ op: "add", value: 1 }]],
    ["an unknown operation", { a: 1 }, [{ op: "frob", path: "/a" }]],
    ["a path without a slash", { a: 1 }, [{ op: "remove", path: "a" }]],
    ["a wrong escape", { "~2": 1 }, [{ op: "remove", path: "/~2" }]],
    ["the first is not done when the second fails", { a: 1 }, [{ op: "remove", path: "/a" }, { op: "remove", path: "/a" }]],
]

for (const [name, document, patch, result] of [...appendix, ...more]) {
    test(`patch: ${name}`, () => {
        if (result === undefined) assert.throws(() => patched(document, patch))
        else assert.deepEqual(patched(document, patch), result)
    })
}

test("A.13: JSON.parse takes the last of two ops, which fails here", () => {
    const patch = JSON.parse('[{"op":"add","path":"/baz","value":"qux","op":"remove"}]')
    assert.throws(() => patched({ foo: "bar" }, patch))
})

test("a patch leaves other parts unchanged", () => {
    const before = { left: { deep: [{ a: 1 }, { b: 2 }] }, right: { c: 3 } }
    const after = patched(before, [{ op: "replace", path: "/left/deep/0/a", value: 9 }])
    assert.deepEqual(after, { left: { deep: [{ a: 9 }, { b: 2 }] }, right: { c: 3 } })
    assert.equal(after.right, before.right)
    assert.equal(after.left.deep[1], before.left.deep[1])
    assert.notEqual(after.left.deep, before.left.deep)
})

test("`__proto__` is a member as any other", () => {
    const before = JSON.parse('{"__proto__":{"a":1}}')
    const after = patched(before, [{ op: "replace", path: "/__proto__/a", value: 2 }, { op: "add", path: "/x", value: 1 }])
    assert.equal(JSON.stringify(after), '{"__proto__":{"a":2},"x":1}')
    assert.equal({}.a, undefined)
    const added = patched({}, JSON.parse('[{"op":"add","path":"/__proto__","value":{"polluted":true}}]'))
    assert.equal(added.polluted, undefined)
    assert.equal(JSON.stringify(added), '{"__proto__":{"polluted":true}}')
})

test("random patches give the same result on a copy and in place", () => {
    let seed = 7
    const random = (limit) => (seed = (seed * 48271) % 2147483647) % limit
    for (let round = 0; round < 2000; round++) {
        let value = { a: [1, 2, { x: 1 }], b: { c: { d: [] } }, e: "text" }
        const paths = ["/a", "/a/0", "/a/-", "/a/2/x", "/b/c", "/b/c/d", "/b/c/d/-", "/b/c/d/0", "/e", "/f", "/a/1"]
        const path = () => paths[random(paths.length)]
        const patch = Array.from({ length: 1 + random(6) }, () => {
            const op = ["add", "remove", "replace", "move", "copy", "test"][random(6)]
            return { op, path: path(), from: path(), value: [random(9), { n: random(9) }, [random(9)]][random(3)] }
        })
        // One operation at a time on deep copies shares nothing.
        let expected = structuredClone(value)
        let fails = false
        for (const operation of patch) {
            try {
                expected = structuredClone(applyPatch(structuredClone(expected), [structuredClone(operation)]))
            } catch {
                fails = true
                break
            }
        }
        if (fails) assert.throws(() => patched(value, patch))
        else assert.deepEqual(patched(value, patch), expected, JSON.stringify(patch))
    }
})

test("equal parts of a new value are the same objects", () => {
    const old = frozen({ list: [{ id: 1 }, { id: 2 }], name: "x", nothing: null })
    assert.equal(share(old, structuredClone(old)), old)
    const fresh = structuredClone(old)
    fresh.list[1].id = 3
    const result = share(old, fresh)
    assert.deepEqual(result, { list: [{ id: 1 }, { id: 3 }], name: "x", nothing: null })
    assert.equal(result.list[0], old.list[0])
    assert.notEqual(result.list, old.list)
    // A member more, less, or different: not equal.
    for (const other of [{ ...old, more: 1 }, { list: old.list, name: "x" }, { list: old.list, name: "x", none: null }]) {
        const shared = share(old, structuredClone(other))
        assert.notEqual(shared, old)
        assert.deepEqual(shared, other)
        assert.equal(shared.list, old.list)
    }
    assert.deepEqual(share([], {}), {})
    assert.deepEqual(share({}, []), [])
    assert.equal(share(1, 1), 1)
    assert.deepEqual(share(undefined, { a: 1 }), { a: 1 })
})

test("equality is that of JSON", () => {
    const table = [
        [1, 1.0, true],
        ["1", 1, false],
        [null, {}, false],
        [[1], { 0: 1 }, false],
        [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
        [{ a: undefined }, { b: 1 }, false],
        [[1, [2]], [1, [2]], true],
        [[1, 2], [1], false],
    ]
    for (const [a, b, expected] of table) assert.equal(equal(a, b), expected, JSON.stringify([a, b]))
})

test("paths and members", () => {
    assert.deepEqual(parsePath(""), [])
    assert.deepEqual(parsePath("/"), [""])
    assert.deepEqual(parsePath("/a~1b/m~0n/~01"), ["a/b", "m~n", "~1"])
    assert.throws(() => parsePath("a"))
    assert.throws(() => parsePath("/~"))
    assert.equal(member([7], "0"), 7)
    assert.equal(member([7], "length"), undefined)
    assert.equal(member({}, "toString"), undefined)
    assert.equal(member("text", "0"), undefined)
    assert.equal(member(null, "a"), undefined)
})

test("every value is equal to itself, including values without a JSON form", () => {
    const cycle = {}
    cycle.own = cycle
    for (const value of [NaN, [NaN], { x: NaN, y: [undefined] }, -0, undefined, 5n, cycle]) assert.ok(equal(value, value))
    assert.ok(equal({ x: NaN, y: [NaN] }, { x: NaN, y: [NaN] }))
    for (const other of [0, null, undefined, "NaN", Infinity]) assert.ok(!equal(NaN, other))
})

test("values without a JSON form are reported with their path", () => {
    const cycle = { list: [{}] }
    cycle.list[0].top = cycle
    const twice = { x: 1 }
    for (const [value, found] of [
        [NaN, ": NaN"],
        [{ position: { x: 1, y: -Infinity } }, "/position/y: -Infinity"],
        [[0, [Infinity]], "/1/0: Infinity"],
        [{ f() {} }, "/f: a function"],
        [{ s: Symbol("s") }, "/s: a symbol"],
        [{ n: 5n }, "/n: a bigint"],
        [{ when: new Date(NaN) }, "/when: Invalid Date"],
        [cycle, "/list/0/top: a value that contains itself"],
        [{ toJSON: () => ({ x: NaN }) }, "/x: NaN"],
        [{ a: undefined, b: [undefined, null], c: new Date(0), d: [twice, twice], e: -0, f: "", g: { h: false } }, undefined],
    ]) {
        assert.equal(unencodable(value), found)
    }
    assert.equal(unencodable({ n: [5n] }, true), undefined)
})
