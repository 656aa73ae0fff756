// What the inspector's page makes of what it is told, without a browser.
import assert from "node:assert/strict"
import test from "node:test"
import { swiftTest } from "../inspector/inspector-copy.js"
import { States, patched } from "../inspector/inspector-state.js"

const id = "852A860E-BCCF-4558-9514-30FB457D8488"

test("a patch makes the value that came behind, and leaves the one before as it was", () => {
    const before = { a: [1, 2], "b/~": { c: 1 } }
    const after = patched(before, [
        { op: "add", path: "/a/-", value: 3 }, { op: "add", path: "/a/0", value: 0 }, { op: "remove", path: "/a/1" },
        { op: "replace", path: "/b~1~0/c", value: 2 }, { op: "copy", from: "/a", path: "/d" }, { op: "move", from: "/b~1~0", path: "/e" },
        { op: "add", path: "/__proto__", value: 1 },
    ])
    assert.equal(JSON.stringify(after), '{"a":[0,2,3],"d":[0,2,3],"e":{"c":2},"__proto__":1}')
    assert.deepEqual(before, { a: [1, 2], "b/~": { c: 1 } })
    assert.equal(patched(1, [{ op: "replace", path: "", value: 2 }]), 2)
    assert.throws(() => patched({}, [{ op: "replace", path: "/a/b", value: 1 }]))
})

test("states follow from each other as far as there is a way, and no further", () => {
    const states = new States()
    states.add(1, { count: 1 })
    const step = (base, version, value) => ({ base, version, patch: [{ op: "replace", path: "/count", value }] })
    // The newest first, as they come; between 3 and 5 one is missing.
    states.follow([step(5, 6, 6), step(4, 5, 5), step(2, 3, 3), step(1, 2, 2)])
    assert.deepEqual([1, 2, 3, 5, 6].map((version) => states.at(version)?.count), [1, 2, 3, undefined, undefined])
    states.add(5, { count: 5 })
    states.follow([step(5, 6, 6)])
    assert.equal(states.at(6).count, 6)
    for (let version = 10; version < 2_000; version++) states.add(version, version)
    assert.equal(states.has(1_000), false)
    assert.equal(states.has(1_999), true)
})

const other = "00000000-0000-0000-0000-000000000001"
const todo = (title) => ({ id, title })

/** What a list had, whose versions are `made`: each with the calls that made it, and the titles that were in it then. */
function recorded(calls, made, initial = []) {
    const values = new Map(made.map(({ version, titles }) => [version, { todos: titles.map(todo) }]))
    const versions = made.map(({ version, by, time = version, ...rest }) => ({
        stream: "observeState", version, time, moreCalls: 0, partial: false, calls: by.map((call) => calls.find((each) => each.call === call)), ...rest,
    }))
    const states = new Map([["observeState", { initial: { todos: initial.map(todo) }, at: (version) => values.get(version) }]])
    return swiftTest({ name: "todos", type: "Demo.Lists.TodoList", calls, versions: versions.toReversed(), states })
}

test("the calls of an actor become a test that begins with its state, makes them, and compares what is shown", () => {
    const calls = [{ call: 3, method: "addTodo(title:)", arguments: ['Milk "#1'], time: 1 }, { call: 4, method: "toggleTodo(id:)", arguments: [id], time: 2 }]
    const text = recorded(calls, [{ version: 2, by: [3], titles: ["Milk"] }, { version: 3, by: [4], titles: ["Bread"] }])
    assert.match(text, /@testable import Demo\n/)
    assert.match(text, /let actor = Lists\.TodoList\(actorSystem: server\.actorSystem\)/)
    assert.match(text, /actor\.state = try recorded\(#"\{"todos":\[\]\}"#\)/)
    const lines = text.slice(text.indexOf("let actor = try")).split("\n").map((line) => line.trim())
    assert.deepEqual(lines.slice(1, 5), [
        '_ = try await actor.addTodo(title: recorded(##""Milk \\"#1""##))',
        // What it has made is looked at before it is named.
        `#expect(await recorded.isShown(#"{"todos":[{"id":"${id}","title":"Milk"}]}"#, in: actor.observeState()))`,
        `_ = try await actor.toggleTodo(id: recorded(#""${id}""#))`,
        `#expect(await recorded.isShown(#"{"todos":[{"id":"${id}","title":"Bread"}]}"#, in: actor.observeState()))`,
    ])
})

test("a copied test says what it leaves out, and compares nothing that others have made too", () => {
    const calls = [
        { call: 1, method: "addTodo(title:)", arguments: ["Milk"], time: 1 }, { call: 2, method: "removeTodo(id:)", arguments: [other], error: "application", time: 2 },
        { call: 3, method: "addTodo(title:)", redacted: true, time: 3 }, { call: 5, method: "addTodo(title:)", arguments: [7], error: "invalidArguments", time: 3 },
        { method: "nothing()\n", error: "methodNotFound", refused: "there is none", time: 4 },
    ]
    const text = recorded(calls, [{ version: 2, by: [1], titles: ["Milk"] }, { version: 3, by: [3], titles: ["?"] }])
    // One that nobody has made is its caller's.
    assert.match(text, new RegExp(`await #expect\\(throws: \\(any Error\\)\\.self\\) \\{ _ = try await actor\\.removeTodo\\(id: recorded\\(#""${other}""#\\)\\) \\}`))
    assert.match(text, /\/\/ addTodo\(title:\) is left out: its arguments are shown to nobody\./)
    assert.match(text, /\/\/ addTodo\(title:\) is left out: its arguments did not fit/)
    assert.match(text, /\/\/ nothing\(\)  is left out: there is no such method/)
    assert.match(text, /\/\/ States are not compared/)
    assert.doesNotMatch(text, /isShown/)
    // The second version has come by itself: what was called behind it is not compared any more.
    const alone = recorded(
        [{ call: 1, method: "addTodo(title:)", arguments: ["Milk"], time: 1 }, { call: 2, method: "addTodo(title:)", arguments: ["Tea"], time: 30 }],
        [{ version: 2, by: [1], titles: ["Milk"] }, { version: 3, by: [], titles: ["Milk", "Rum"], time: 20 }, { version: 4, by: [2], titles: ["Tea"], time: 31 }])
    const [before, after] = alone.split("// From here on it has changed by itself, too.")
    assert.match(before, /isShown\(#"\{"todos":\[\{"id":"[^"]*","title":"Milk"\}\]\}"#/)
    assert.match(after, /Tea/)
    assert.doesNotMatch(after, /isShown/)
    // Two have made it at once: which of them has made the identity is not known.
    const merged = recorded(
        [
            { call: 1, method: "addTodo(title:)", arguments: ["a"] }, { call: 2, method: "addTodo(title:)", arguments: ["b"] },
            { call: 3, method: "removeTodo(id:)", arguments: [id] },
        ], [{ version: 3, by: [1, 2], titles: ["a"] }])
    assert.match(merged, /removeTodo\(id:\) is left out: it names what is not known here/)
})
