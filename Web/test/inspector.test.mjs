// What the inspector's page makes of what it is told, without a browser.
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import test from "node:test"
import { swiftTest } from "../inspector/inspector-copy.js"
import { States, patched } from "../inspector/inspector-state.js"

const copied = (name) => readFileSync(new URL(`../../Tests/TrebuchetCLITests/${name}.swift`, import.meta.url), "utf8")
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

test("the calls of an actor become a test, which Swift compiles", () => {
    const calls = [
        { call: 1, method: "addTodo(title:)", arguments: ['Milk "\\(1)\n'] }, { call: 2, method: "addTodo(title:)", arguments: ["Bread"] },
        { call: 3, method: "toggleTodo(id:)", arguments: [id] },
        { call: 4, method: "removeTodo(id:)", arguments: ["00000000-0000-0000-0000-000000000001"] },
        { call: 5, method: "removeTodo(id:)", arguments: [id] }, { call: 6, method: "removeTodo(id:)", arguments: [id], error: "application" },
        { method: "nothing()", error: "methodNotFound", refused: "there is none" }, { call: 7, method: "addTodo(title:)", redacted: true },
    ]
    const versions = [{ calls: [{ call: 2 }], patch: [{ op: "add", path: "/todos/-", value: { id, title: "Bread" } }] }]
    const text = swiftTest({ name: "todos", type: "TrebuchetCLI.TodoList", calls, versions })
    assert.equal(text, copied("CopiedTodoTests"))
    const game = [{ call: 1, method: "join(player:)", arguments: ["ada"] }, { call: 2, method: "advanceLevel()", arguments: [] }]
    assert.match(swiftTest({ name: "game", type: "TrebuchetCLI.GameServer", calls: game, versions: [] }), /_ = try await actor.advanceLevel\(\)/)
})
