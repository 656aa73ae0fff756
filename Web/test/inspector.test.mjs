// Tests of the inspector page's logic, without a browser.
import assert from "node:assert/strict"
import test from "node:test"
import { copiedTest, swiftTest } from "../inspector/inspector-copy.js"
import { exact, written } from "../inspector/inspector-json.js"
import { sampled } from "../inspector/inspector-parts.js"
import { States, patched } from "../inspector/inspector-state.js"

const id = "852A860E-BCCF-4558-9514-30FB457D8488"

test("a patch creates the next value, and does not change the previous one", () => {
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

test("earlier states are derived as far as patches are available", () => {
    const states = new States()
    states.add(1, { count: 1 })
    const step = (base, version, value) => ({ base, version, patch: [{ op: "replace", path: "/count", value }] })
    // The newest first, as received; one between 3 and 5 is missing.
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

/** The content of a list at the versions `made`, each with the calls that made it and its titles. */
function recorded(calls, made, initial = []) {
    const values = new Map(made.map(({ version, titles }) => [version, { todos: titles.map(todo) }]))
    const versions = made.map(({ version, by, time = version, ...rest }) => ({
        stream: "observeState", version, time, moreCalls: 0, partial: false, calls: by.map((call) => calls.find((each) => each.call === call)), ...rest,
    }))
    const states = new Map([["observeState", { initial: { todos: initial.map(todo) }, at: (version) => values.get(version) }]])
    return swiftTest({ name: "todos", type: "Demo.Lists.TodoList", calls, versions: versions.toReversed(), states })
}

test("the calls of an actor become a test that begins with its state, repeats them, and compares states", () => {
    const calls = [{ call: 3, method: "addTodo(title:)", arguments: ['Milk "#1'], time: 1 }, { call: 4, method: "toggleTodo(id:)", arguments: [id], time: 2 }]
    const text = recorded(calls, [{ version: 2, by: [3], titles: ["Milk"] }, { version: 3, by: [4], titles: ["Bread"] }])
    assert.match(text, /@testable import Demo\n/)
    assert.match(text, /let actor = Lists\.TodoList\(actorSystem: server\.actorSystem\)/)
    assert.match(text, /actor\.state = try recorded\(#"\{"todos":\[\]\}"#\)/)
    const lines = text.slice(text.indexOf("let actor = try")).split("\n").map((line) => line.trim())
    assert.deepEqual(lines.slice(1, 5), [
        '_ = try await actor.addTodo(title: recorded(##""Milk \\"#1""##))',
        // A created identity is recorded before its name is used.
        `#expect(await recorded.matches(#"{"todos":[{"id":"${id}","title":"Milk"}]}"#, in: actor.observeState()))`,
        `_ = try await actor.toggleTodo(id: recorded(#""${id}""#))`,
        `#expect(await recorded.matches(#"{"todos":[{"id":"${id}","title":"Bread"}]}"#, in: actor.observeState()))`,
    ])
})

test("a copied test lists what it omits, and does not compare changes of other calls", () => {
    const calls = [
        { call: 1, method: "addTodo(title:)", arguments: ["Milk"], time: 1 }, { call: 2, method: "removeTodo(id:)", arguments: [other], error: "application", time: 2 },
        { call: 3, method: "addTodo(title:)", redacted: true, time: 3 }, { call: 5, method: "addTodo(title:)", arguments: [7], error: "invalidArguments", time: 3 },
        { method: "nothing()\n", error: "methodNotFound", refused: "there\nis none", time: 4 },
    ]
    const text = recorded(calls, [{ version: 2, by: [1], titles: ["Milk"] }, { version: 3, by: [3], titles: ["?"] }])
    // An identity that no recorded call created comes from the caller.
    assert.match(text, new RegExp(`await #expect\\(throws: \\(any Error\\)\\.self\\) \\{ _ = try await actor\\.removeTodo\\(id: recorded\\(#""${other}""#\\)\\) \\}`))
    assert.match(text, /\/\/ addTodo\(title:\) is omitted: its arguments are redacted\./)
    assert.match(text, /\/\/ addTodo\(title:\) is omitted: its arguments were invalid/)
    assert.match(text, /\/\/ nothing\(\)  is omitted: it was rejected before execution with methodNotFound: there is none\./)
    assert.match(text, /\/\/ States are not compared/)
    assert.doesNotMatch(text, /matches/)
    // The second version has no call, so the calls after it are not compared.
    const alone = recorded(
        [{ call: 1, method: "addTodo(title:)", arguments: ["Milk"], time: 1 }, { call: 2, method: "addTodo(title:)", arguments: ["Tea"], time: 30 }],
        [{ version: 2, by: [1], titles: ["Milk"] }, { version: 3, by: [], titles: ["Milk", "Rum"], time: 20 }, { version: 4, by: [2], titles: ["Tea"], time: 31 }])
    const [before, after] = alone.split("// From here on, the state also changed without calls.")
    assert.match(before, /matches\(#"\{"todos":\[\{"id":"[^"]*","title":"Milk"\}\]\}"#/)
    assert.match(after, /Tea/)
    assert.doesNotMatch(after, /matches/)
    // Two concurrent calls changed the version, so the creator of the identity is unknown.
    const merged = recorded(
        [
            { call: 1, method: "addTodo(title:)", arguments: ["a"] }, { call: 2, method: "addTodo(title:)", arguments: ["b"] },
            { call: 3, method: "removeTodo(id:)", arguments: [id] },
        ], [{ version: 3, by: [1, 2], titles: ["a"] }])
    assert.match(merged, /removeTodo\(id:\) is omitted: it refers to an unknown identity/)
})

test("a test has a constant for recorded values only if it uses one, so that it compiles without a warning", () => {
    const text = (initial, calls) => swiftTest({ name: "a", type: "Demo.A", calls, versions: [], states: new Map([["observeState", { initial, at: () => undefined }]]) })
    const add = (...args) => [{ call: 1, method: args.length ? "add(_:)" : "add()", arguments: args }]
    assert.doesNotMatch(text(undefined, add()), /RecordedState/)
    for (const test of [text({ n: 1 }, add()), text(undefined, add({ n: 1 })), text({ n: 1 }, [])]) assert.match(test, /let recorded = RecordedState\(\)/)
})

test("numbers that a double does not represent are copied, patched and shown exactly", () => {
    const large = "9007199254740993"
    const json = `{"call":1,"method":"pay(cents:to:share:)","arguments":[${large},18446744073709551615,0.1],"time":2}`
    const calls = [exact.parse(json)]
    const state = exact.parse(`{"paid":${large}}`)
    const after = patched(exact.parse('{"paid":1,"more":[{"a":1.00000000000000000001}]}'), exact.parse(`[{"op":"replace","path":"/paid","value":${large}}]`))
    assert.equal(written(after), `{"paid":${large},"more":[{"a":1.00000000000000000001}]}`)
    const text = swiftTest({
        name: "till", type: "Demo.Till", calls, versions: [{ stream: "observeState", version: 2, time: 2, calls, moreCalls: 0 }],
        states: new Map([["observeState", { initial: { paid: 0 }, at: () => state }]]),
    })
    assert.match(text, new RegExp(`pay\\(cents: recorded\\(#"${large}"#\\), to: recorded\\(#"18446744073709551615"#\\), share: recorded\\(#"0\\.1"#\\)\\)`))
    assert.match(text, new RegExp(`matches\\(#"\\{"paid":${large}\\}"#`))
})

/** The data of the inspector for a shop with the stock `value`; calls and versions oldest first. */
function shop(value, calls, versions, more) {
    return {
        name: "shops/2", type: "Demo.Shop", states: [{ stream: "observeStock", version: 9, value, bytes: 2 }], calls: calls.toReversed(),
        recorded: { since: 100, completeSince: 110, versions: versions.toReversed(), earlier: [], ...more },
    }
}

/** The copied test of an actor that was inspected at these times. */
function copyOf(...looks) {
    const known = new Map()
    for (const look of looks) States.update(look, known)
    return copiedTest(looks.at(-1), known)
}

const order = (call, time, more) => ({ call, time, seconds: 0.001, method: "order(quantity:)", arguments: [call], ...more })

test("a copied test begins with the state before its calls, or reports that this state is unknown", () => {
    // All calls came before the inspection: the shown state is their result.
    const unseen = copyOf(shop(0, [order(1, 50), order(2, 60, { error: "application" })], []))
    assert.doesNotMatch(unseen, /actor\.stock|matches/)
    assert.match(unseen, /\/\/ The state of stock before these calls was not recorded/)
    assert.match(unseen, /order\(quantity: 1\)[^]*#expect\(throws: [^]*order\(quantity: 2\)/)
    // A call that began before the recording of its state may have changed it.
    assert.doesNotMatch(copyOf(shop(0, [order(1, 105)], [])), /actor\.stock/)
    // The later calls have changed nothing, so the state is known.
    const quiet = copyOf(shop(7, [order(1, 50), order(2, 120, { error: "application" })], []))
    assert.match(quiet, /actor\.stock = try recorded\(#"7"#\)/)
    assert.match(quiet, /\/\/ 1 earlier call is omitted/)
    assert.doesNotMatch(quiet, /quantity: 1\)/)
    assert.match(quiet, /matches\(#"7"#/)
    // A call that ended before the oldest recorded version contributed to the initial state, though a longer call began before it.
    const long = order(3, 90, { seconds: 1 })
    const version = { stream: "observeStock", version: 6, base: 5, time: 300, calls: [long], moreCalls: 0, patch: [{ op: "replace", path: "", value: 5 }] }
    const overtaken = copyOf(shop(5, [order(4, 95), long], [version], { earlier: [{ stream: "observeStock", version: 5, value: 6 }] }))
    assert.match(overtaken, /actor\.stock = try recorded\(#"6"#\)/)
    assert.doesNotMatch(overtaken, /quantity: 4\)/)
    // The base of the oldest version was not recorded.
    const lost = copyOf(shop(5, [long], [version]))
    assert.doesNotMatch(lost, /actor\.stock|matches/)
    assert.match(lost, /\/\/ The state of stock before these calls is unknown: it begins as in a new actor/)
})

test("a copied test omits calls whose outcome does not depend on the actor alone, and fails when none is left", () => {
    const calls = [order(1, 120, { others: ["tills/1"] }), order(2, 121, { error: "timeout" }), order(3, 122, { error: "unauthorized", refused: "not allowed" })]
    const text = copyOf(shop(7, calls, []))
    assert.match(text, /order\(quantity:\) is omitted: it calls 'tills\/1', and the test has no other actors\./)
    assert.match(text, /is omitted: it ended with timeout/)
    assert.match(text, /is omitted: it was rejected before execution with unauthorized: not allowed\./)
    const none = copyOf({ ...shop(7, [{ method: "write(_:)", redacted: true, call: 1, time: 120 }], []), states: [] })
    assert.match(none, /Issue\.record\("no checks: none of the calls/)
    assert.doesNotMatch(copyOf(shop(7, [order(1, 120)], [])), /Issue\.record/)
    // Identities of an omitted call are neither recorded nor named.
    const maker = { call: 1, method: "add(title:)", arguments: ["a"], others: ["x"], time: 1 }
    const named = { call: 2, method: "remove(id:)", arguments: [id], time: 2 }
    const cut = recorded([maker, named], [{ version: 2, by: [1], titles: ["a"] }])
    assert.match(cut, /remove\(id:\) is omitted: it refers to an unknown identity/)
    assert.doesNotMatch(cut, /matches/)
})

test("text in a copied test cannot change the direction of a line or end it", () => {
    const name = "a\u2028b\u202ec\u0085"
    const calls = [order(1, 120, { arguments: ["\u202ex\u2029"] }), { method: "x\u2028import Evil", error: "methodNotFound", refused: "\u2029import Evil\r\n", time: 121 }]
    const text = copyOf({ ...shop("\u200f", calls, []), name })
    assert.doesNotMatch(text, /[\p{Cf}\u2028\u2029\u0080-\u009f\r]/u)
    assert.doesNotMatch(text, /^\s*import Evil/m)
    assert.match(text, /recorded\(##?"\S*\\u202ex\\u2029/)
})

test("the value before a snapshot is that of the previous version, or unknown where versions may be missing", () => {
    const states = new States()
    for (const [version, value] of [[3, "c"], [7, "g"]]) states.add(version, value)
    assert.equal(states.before({ version: 9, previous: 7 }), "g")
    assert.equal(states.before({ version: 9, previous: 8 }), undefined)
    assert.equal(states.before({ version: 9, previous: null }), undefined)
    assert.equal(states.before({ version: 9, base: 3, previous: 7 }), "c")
})

test("the number of shown calls does not claim completeness where rejected calls were omitted", () => {
    const first = { recorded: 10, refused: 5, answered: 100, errorsSent: 20 }
    assert.equal(sampled(first, { recorded: 1_010, refused: 5, answered: 5_100, errorsSent: 20 }), "; sampled: 1,000 of 5,000 answered calls")
    // No call was answered, and all recorded ones were rejected.
    assert.equal(
        sampled(first, { recorded: 30_010, refused: 30_005, answered: 100, errorsSent: 270_020 }),
        "; sampled: 0 of 0 answered calls, and 30,000 rejected calls (270,000 errors sent to clients)")
})
