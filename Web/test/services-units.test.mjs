// The pure parts of the services: shown pending writes, their queue, the order of values, positions and events.
import assert from "node:assert/strict"
import { test } from "node:test"
import { Backend } from "../.build/services/backend.js"
import { commands, perform } from "../.build/services/commands.js"
import { exact } from "../dist/trebuchet-exact.js"
import { EventCursor } from "../.build/services/event-cursor.js"
import { overlay, Uncertain } from "../.build/services/overlay.js"
import { PendingWrites } from "../.build/services/pending-writes.js"
import { ResultPosition } from "../.build/services/result-position.js"
import { matches, precedes, wireQuery } from "../.build/services/queries.js"
import { sentenceOf } from "../.build/services/error-messages.js"
import { batchOf, settleOne } from "../.build/services/write-sender.js"
import { delayAfter, pauseAfter, reasonOf, wait } from "../.build/services/rejections.js"
import { comparePositions, copied, isSame, merged } from "../.build/services/values.js"

const document = (id, fields = {}, more = {}) => ({ id, fields: { id, ...fields }, created: 1, revision: 1, createdAt: 5, updatedAt: 5, ...more })
const { create, update, merge, increment, link, unlink, expire, delete: remove, check } = commands((command) => command)

test("commands are encoded as in the protocol", () => {
    for (const [command, wire] of [
        [create({ id: 1, title: "Milk" }, { expiresIn: 60 }), { create: { id: "1", fields: { id: 1, title: "Milk" }, expiresIn: 60 } }],
        [update(1, { title: null }, { ifRevision: 7 }), { update: { id: "1", fields: { title: null }, ifRevision: 7 } }],
        [increment("a", "votes"), { increment: { id: "a", field: "votes", by: 1 } }],
        [increment("a", "votes", 0), { increment: { id: "a", field: "votes", by: 0 } }],
        [link("a", "owner", 7, { in: "people" }), { link: { id: "a", field: "owner", target: 7, in: "people" } }],
        [expire("a"), { expire: { id: "a" } }],
        [remove("a", { if: { done: true } }), { delete: { id: "a", if: { done: true } } }],
        [check("a", { ifAbsent: true }), { check: { id: "a", ifAbsent: true } }],
    ]) {
        assert.deepEqual(JSON.parse(JSON.stringify(command)), wire)
    }
})

test("a command changes a document as at the server", () => {
    const a = document("a", { n: 1, tags: ["x", { y: 1 }], place: { shelf: 2, row: 1 }, gone: 1 })
    const cases = [
        [create({ id: "a" }), a, "refused"],
        [create({ id: "b", at: [{ $serverTime: true }] }), undefined, { id: "b", at: [9] }],
        [update("a", { n: { $serverTime: true }, gone: null }), a, { ...a.fields, n: 9, gone: undefined }],
        [update("a", {}), undefined, "refused"],
        [merge("a", { place: { row: null, box: { z: 1 } } }), a, { ...a.fields, place: { shelf: 2, box: { z: 1 } } }],
        [increment("a", "n", 2), a, { ...a.fields, n: 3 }],
        [increment("a", "new"), a, { ...a.fields, new: 1 }],
        [increment("a", "tags"), a, "refused"],
        [link("a", "tags", { y: 1 }), a, a.fields],
        [link("a", "tags", "z"), a, { ...a.fields, tags: ["x", { y: 1 }, "z"] }],
        [link("a", "n", "z"), a, "refused"],
        [unlink("a", "tags", { y: 1 }), a, { ...a.fields, tags: ["x"] }],
        [unlink("a", "none", 1), a, a.fields],
        [remove("a"), a, undefined],
        [remove("a"), undefined, undefined],
        [remove("a", { if: { n: 2 } }), a, "refused"],
        [remove("a", { if: { n: 1, absent: null } }), a, undefined],
        [update("a", { n: 2 }, { ifRevision: 1 }), a, { ...a.fields, n: 2 }],
        [update("a", { n: 2 }, { ifRevision: 2 }), a, "refused"],
        [check("a", { ifAbsent: true }), a, "refused"],
        [check("a"), a, a.fields],
        [check("a"), undefined, "refused"],
    ]
    for (const [command, before, after] of cases) {
        const copy = structuredClone(before)
        let result
        try {
            result = perform(command, before, 100, 9)?.fields
        } catch {
            result = "refused"
        }
        assert.ok(isSame(JSON.parse(JSON.stringify(result ?? null)), JSON.parse(JSON.stringify(after ?? null))), JSON.stringify([command, result]))
        assert.deepEqual(before, copy)
    }
    assert.equal(perform(expire("a", 2), a, 100, 9).expiresAt, 2009)
    assert.equal("expiresAt" in perform(expire("a"), { ...a, expiresAt: 3 }, 100, 9), false)
    const evil = JSON.parse('{"__proto__":{"polluted":1}}')
    assert.equal(perform(update("a", evil), a, 1, 1).fields.polluted, undefined)
    assert.equal(perform(merge("a", evil), a, 1, 1).fields.polluted, undefined)
    assert.equal({}.polluted, undefined)
})

test("values have the order of the server", () => {
    const inOrder = [null, false, true, -1, 0, 0.5, 10, "", "a", "ab", "b", "z", "é", "\uffee", "😀", [], {}]
    for (const [index, one] of inOrder.entries()) {
        for (const [other, two] of inOrder.entries()) {
            assert.equal(Math.sign(comparePositions(one, two)), Math.sign(index - other), JSON.stringify([one, two]))
        }
    }
    assert.equal(comparePositions([1], [2]), 0)
    assert.equal(comparePositions(undefined, null), 0)
})

test("conditions have the results of the server", () => {
    const a = document("a", { n: 3, text: "Berlin", tags: ["x", 1], "a.b": 1, address: { city: "Bonn" } }, { creator: "ada" })
    for (const [where, holds] of [
        [{}, true],
        [{ n: 3 }, true],
        [{ n: "3" }, false],
        [{ none: null }, true],
        [{ n: { notEqual: 3 } }, false],
        [{ n: { in: [1, 3] } }, true],
        [{ n: { less: 3 } }, false],
        [{ n: { lessOrEqual: 3 } }, true],
        [{ n: { greater: 2, less: 4 } }, true],
        [{ n: { greaterOrEqual: 4 } }, false],
        [{ n: { greater: "2" } }, false],
        [{ none: { less: 4 } }, false],
        [{ text: { prefix: "Ber" } }, true],
        [{ n: { prefix: "3" } }, false],
        [{ tags: { contains: 1 } }, true],
        [{ tags: { contains: "1" } }, false],
        [{ "address.city": "Bonn" }, true],
        [{ "a\\.b": 1 }, true],
        [{ "text.length": 6 }, false],
        [{ $creator: "ada" }, true],
        [{ $revision: { less: 1 } }, false],
        [{ $any: [{ n: 4 }, { n: 3, text: "Berlin" }] }, true],
        [{ $any: [{ n: 4 }, { n: 3, text: "Bonn" }] }, false],
    ]) {
        assert.equal(matches(a, wireQuery({ where }).conditions), holds, JSON.stringify(where))
    }
    assert.deepEqual(wireQuery({ where: { a: 1 }, order: ["-a", "b"], limit: 3 }), {
        conditions: [{ field: "a", comparison: "equal", value: 1 }],
        order: [{ field: "a", isDescending: true }, { field: "b", isDescending: false }],
        limit: 3, after: undefined, counts: undefined,
    })
    const { order } = wireQuery({ order: "-n" })
    assert.ok(precedes(document("b", { n: 4 }), a, order))
    assert.ok(precedes(document("a"), document("b"), order))
    assert.ok(precedes(document("b"), document("a", {}, { created: 2 }), order))
})

const ids = (documents) => documents.map(({ id }) => id).join("")
const rows = (...names) => names.map((id) => document(id, { place: id }))
const write = (number, commands, more) => ({ secret: "s", number, commands: [commands].flat(), time: 9, ...more })

test("writes are shown over an unchanged result until the result includes them", () => {
    const result = { revision: 5, hasMore: false, documents: rows("b", "d") }
    const query = wireQuery({ order: "place" })
    for (const [writes, seen, shown, options] of [
        [[], 5, "bd"],
        [[write(1, create({ id: "c", place: "c" }))], 5, "bcd"],
        [[write(1, create({ id: "c", place: "c" }), { revision: 6 })], 5, "bcd"],
        [[write(1, create({ id: "c", place: "c" }), { revision: 6 })], 6, "bd"],
        [[write(1, create({ id: "b", place: "z" }))], 5, "bd"],
        [[write(1, remove("b")), write(2, create({ id: "b", place: "e" }))], 5, "db"],
        [[write(1, update("b", { place: "e" }))], 5, "db"],
        [[write(1, update("x", { place: "e" }))], 5, "bd"],
        // All or nothing.
        [[write(1, [remove("b"), update("x", {})])], 5, "bd"],
        [[write(1, [create({ id: "c", place: "c" }), update("c", { place: "a" })])], 5, "cbd"],
        [[write(1, create({ id: "c", place: "c" }))], 5, "bc", { limit: 2 }],
        [[write(1, create({ id: "c", place: "c" }))], 5, "bd", { where: { place: { notEqual: "c" } } }],
    ]) {
        const before = structuredClone(result)
        assert.equal(ids(overlay(result, wireQuery({ order: "place", ...options }), writes, seen)), shown, JSON.stringify(writes))
        assert.deepEqual(result, before)
    }
    // Documents may precede the first of a page with a cursor, and follow the last of a truncated result.
    assert.equal(ids(overlay({ ...result, hasMore: true }, query, [write(1, create({ id: "e", place: "e" }))], 5)), "bd")
    assert.equal(ids(overlay(result, wireQuery({ order: "place", after: "cursor" }), [write(1, create({ id: "a", place: "a" })), write(2, create({ id: "c", place: "c" }))], 5)), "bcd")
    // Without changes it is the same array.
    assert.equal(overlay(result, query, [], 5), result.documents)
    // Equal sort keys: documents created here come last.
    assert.equal(ids(overlay(result, wireQuery({}), [write(1, create({ id: "a" })), write(2, create({ id: "0" }))], 5)), "bda0")
})

test("a sent increment is not shown twice when the result arrives before the response", () => {
    const uncertain = new Uncertain()
    const sent = write(1, increment("a", "n"), { wasSent: true })
    const before = { revision: 5, hasMore: false, documents: [document("a", { n: 1 })] }
    const after = { revision: 6, hasMore: false, documents: [document("a", { n: 2 })] }
    const shown = (result, writes, seen) => overlay(result, wireQuery({}), writes, seen, uncertain._documents)[0].fields.n
    assert.equal(shown(before, [sent], 5), 2)
    uncertain._keep(before, 5, [sent])
    assert.equal(shown(after, [sent], 6), 2)
    // An additional, unsent increment counts.
    assert.equal(shown(after, [sent, write(2, increment("a", "n"))], 6), 3)
    sent.revision = 6
    uncertain._forget([sent])
    assert.equal(shown(after, [sent], 6), 2)
})

test("pending writes are sent in order, in batches, each until it is answered", () => {
    const writes = new PendingWrites("mine")
    const all = Array.from({ length: 40 }, () => writes._add([check("a")], 0))
    assert.deepEqual(all.map(({ number }) => number), Array.from({ length: 40 }, (_, index) => index + 1))
    assert.equal(batchOf(writes).length, 32)
    assert.deepEqual(batchOf(writes), batchOf(writes))
    assert.deepEqual(batchOf(writes, 1), [all[0]])
    all[3].isBeingStored = true
    assert.equal(batchOf(writes).length, 3)
    for (const number of [1, 2]) settleOne(writes, "mine", { number, revision: number })
    assert.equal(settleOne(writes, "mine", { number: 3, revision: 2, error: { notFound: { id: "a" } } }), all[2])
    assert.equal(settleOne(writes, "mine", { number: 3, revision: 2 }), undefined)
    assert.deepEqual(batchOf(writes), [])
    assert.equal(writes._all.length, 39)
    writes._forget(1)
    assert.deepEqual(writes._all.slice(0, 2), [all[1], all[3]])
    all[3].isBeingStored = false
    // No pending write is dropped, even without a result that shows it.
    writes._forget(Infinity)
    assert.deepEqual([writes._all.length, writes._all[0]], [37, all[3]])
    // The writes of a closed tab come first, and not in one batch with others.
    writes._all.unshift({ secret: "theirs", number: 7, commands: [], time: 0 }, { secret: "theirs", number: 8, commands: [], time: 0 })
    assert.deepEqual(batchOf(writes).map(({ secret, number }) => secret + number), ["theirs7", "theirs8"])
    const large = new PendingWrites("large")
    for (let index = 0; index < 3; index++) large._add([update("a", { text: "x".repeat(200_000) })], 0)
    assert.equal(batchOf(large).length, 1)
    const done = new PendingWrites("done")
    for (let number = 1; number <= 1003; number++) settleOne(done, "done", { ...done._add([], 0), revision: 5000 + number })
    done._forget(10)
    assert.deepEqual([done._all.length, done._all[0].number], [1000, 4])
})

test("a position is updated by writes that do not change a result", () => {
    const position = new ResultPosition()
    assert.equal(position._seen, -1)
    position._confirm(3, 8)
    assert.equal(position._seen, -1)
    position._shows(2)
    assert.equal(position._seen, 2)
    position._shows(3)
    assert.equal(position._seen, 8)
    position._confirm(2, 9)
    assert.equal(position._seen, 9)
    position._confirm(10, 12)
    position._confirm(10, 11)
    position._confirm(9, 20)
    position._shows(10)
    assert.equal(position._seen, 12)
    position._begin()
    assert.equal(position._seen, 10)
})

test("events are received once and in order, and missing ones are detected", () => {
    const cursor = new EventCursor()
    cursor._joined({ epoch: "a", last: 5 })
    for (const [number, isBehind, isTaken, missed] of [
        [5, false, false, 0],
        [6, false, true, 0],
        [8, true, true, 1],
        [7, false, false, 1],
    ]) {
        assert.deepEqual([cursor._isBehind({ number }), cursor._take({ number }), cursor._missed], [isBehind, isTaken, missed])
    }
    cursor._joined({ epoch: "a", last: 20 })
    assert.equal(cursor._last, 8)
    // The room has moved with all events; then it has moved, and lost the last two.
    cursor._joined({ epoch: "b", last: 20, earlier: [{ epoch: "a", last: 20 }] })
    assert.equal(cursor._last, 8)
    cursor._joined({ epoch: "c", last: 6, earlier: [{ epoch: "a", last: 20 }, { epoch: "b", last: 6 }] })
    assert.equal(cursor._last, 6)
    // It was restored: of the incarnations it has the first one, incomplete.
    cursor._joined({ epoch: "d", last: 5, earlier: [{ epoch: "a", last: 4 }] })
    assert.equal(cursor._last, 4)
    assert.equal(cursor._restarts, 0)
    cursor._joined({ epoch: "e", last: 20 })
    assert.equal(cursor._last, 0)
    assert.equal(cursor._restarts, 1)
})

test("a cursor retains the last eight earlier incarnations that a server names", () => {
    const cursor = new EventCursor()
    const earlier = Array.from({ length: 100_000 }, (_, number) => ({ epoch: `e${number}`, last: 5 }))
    cursor._joined({ epoch: "a", last: 5, earlier })
    assert.deepEqual(cursor._earlier, earlier.slice(-8))
})

test("merge patches follow RFC 7396", () => {
    for (const [before, patch, after] of [
        [{ a: 1 }, { a: 2 }, { a: 2 }],
        [{ a: 1, b: 1 }, { a: null }, { b: 1 }],
        [{ a: { x: 1, y: 1 } }, { a: { x: 2, y: null } }, { a: { x: 2 } }],
        [{ a: [1] }, { a: [2, null] }, { a: [2, null] }],
        [{ a: 1 }, 5, 5],
        [5, { a: { b: null, c: 1 } }, { a: { c: 1 } }],
        [{ toString: 1 }, { b: 1 }, { toString: 1, b: 1 }],
    ]) {
        const copy = structuredClone(before)
        assert.deepEqual(merged(before, patch), after)
        assert.deepEqual(before, copy)
    }
})

test("a temporary error is repeated after its delay, less up to a half, and other errors are final", (test) => {
    const random = test.mock.method(Math, "random", () => 0)
    const application = (data) => ({ code: "application", data })
    for (const [error, pause] of [
        [application({ rateLimited: { retryAfterMilliseconds: 7 } }), 7],
        [application({ otherAccount: {} }), 400],
        [application({ forbidden: {} }), undefined],
        [application({ ofALaterServer: {} }), undefined],
        [{ code: "rateLimited", retryAfter: 9 }, 9],
        [{ code: "unknownOutcome" }, 400],
        [{ code: "actorNotFound" }, undefined],
        [{ code: "unauthenticated" }, 400],
    ]) {
        assert.equal(pauseAfter(error, 2), pause, JSON.stringify(error))
    }
    assert.equal(pauseAfter({ code: "unauthenticated" }, 2, ""), undefined)
    assert.deepEqual([0, 1, 6, 7, 99].map(delayAfter), [100, 200, 6400, 10_000, 10_000])
    random.mock.mockImplementation(() => 1)
    assert.equal(delayAfter(1), 100)
    assert.equal(reasonOf(application({ closed: {} })), "closed")
})

test("a condition has its JSON form, and none is omitted", () => {
    const due = new Date(5000)
    const wire = (where) => JSON.parse(JSON.stringify(wireQuery({ where }))).conditions
    const equal = (value) => [{ field: "due", comparison: "equal", value }]
    assert.deepEqual(wire({ due }), equal(due.toISOString()))
    assert.deepEqual(wire({ due: undefined }), equal(null))
    assert.deepEqual(wire({ due: ["a"] }), equal(["a"]))
    assert.deepEqual(wire({ due: { greater: due, less: undefined } }), [
        { field: "due", comparison: "greater", value: due.toISOString() }, { field: "due", comparison: "less", value: null },
    ])
    const number = exact.parse("[12345678901234567890]")[0]
    assert.deepEqual(wireQuery({ where: { due: number } }).conditions, equal(number))
})

test("numbers beyond the precision of a double are numbers", () => {
    const [large, larger] = exact.parse("[12345678901234567890,12345678901234577891]")
    const a = document("a", { n: large })
    assert.ok(comparePositions(large, larger) < 0 && comparePositions(large, 1) > 0 && comparePositions(large, "") < 0)
    assert.ok(matches(a, wireQuery({ where: { n: { greater: 5 } } }).conditions))
    assert.equal(perform(update("a", { m: large }), a, 2, 9).fields.m, large)
    assert.equal(perform(create({ id: "b", m: [large] }), undefined, 2, 9).fields.m[0], large)
    assert.deepEqual(merged({ a: large, b: 2n }, { c: larger }), { a: large, b: 2n, c: larger })
    assert.deepEqual(merged({ a: { b: 1 } }, { a: 5n }), { a: 5n })
})

test("a copy has the JSON form of its value, and numbers keep their digits", () => {
    const number = exact.parse("[12345678901234567890]")[0]
    const value = { at: new Date(5), all: [{ n: 2n ** 60n }], number, own: { toJSON: () => ({ at: new Date(6) }) } }
    const copy = copied(value)
    assert.deepEqual(copy, { at: new Date(5).toISOString(), all: [{ n: 2n ** 60n }], number, own: { at: new Date(6).toISOString() } })
    assert.notEqual(copy.all[0], value.all[0])
    assert.equal(copy.number, number)
})

test("a document created here has its creator", () => {
    const result = { revision: 5, hasMore: false, documents: [] }
    const shown = (where, account) => overlay(result, wireQuery({ where }), [write(1, create({ id: "a" }), { account })], 5).length
    assert.equal(shown({ $creator: "ada" }, "ada"), 1)
    assert.equal(shown({ $creator: "ada" }, "bob"), 0)
    assert.equal(shown({ $creator: null }, ""), 1)
})

/** Calls `body` with the requested delays; `pass` runs at each timer. */
async function withTimers(pass, body) {
    const [waits, before] = [[], globalThis.setTimeout]
    globalThis.setTimeout = (action, milliseconds) => {
        waits.push(milliseconds)
        pass()
        queueMicrotask(action)
    }
    try {
        await body(waits)
    } finally {
        globalThis.setTimeout = before
    }
}

test("a delay beyond the range of timers does not end at once", () =>
    withTimers(() => {}, async (waits) => {
        await wait(30 * 24 * 3600 * 1000)
        await wait(5)
        assert.deepEqual(waits, [2e9, 5])
    }))

test("a sign-out waits 30 s for pending writes and 10 s for a connection, also on a hidden page, whose timers are late", async () => {
    const { now } = Date
    let time = 0
    Date.now = () => time
    const owner = { _collections: new Map([["n", { _pending: [{}] }]]), _rooms: new Map(), _account: "ada", _isLive: true }
    try {
        await withTimers(() => (time += 1000), () => Backend.prototype._sent.call(owner, true))
        assert.equal(time, 30_000)
        owner._isLive = false
        await withTimers(() => (time += 1000), () => assert.rejects(Backend.prototype._sent.call(owner, true), /no connection/))
        assert.equal(time, 41_000)
    } finally {
        Date.now = now
    }
})

test("a refusal has a message, and an unknown one has that of the server", () => {
    assert.equal(sentenceOf({ documentTooLarge: { id: "a", bytes: 7, limit: 5 } }), "document 'a' has 7 bytes; at most 5 are allowed")
    assert.equal(sentenceOf({ invalidDocument: { _0: "it has no fields" } }), "the document cannot be stored: it has no fields")
    assert.equal(sentenceOf({ outdated: {} }), "the write was not applied: newer writes of its client arrived before it")
    assert.equal(sentenceOf({ constructor: { a: 1 } }), 'refused: {"constructor":{"a":1}}')
    // From a server that sends invalid data.
    for (const odd of [{}, { notFound: null }, true, "x", 5, []]) assert.equal(sentenceOf(odd), "refused: " + JSON.stringify(odd))
})
