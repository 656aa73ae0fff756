// The services with changes at unusual moments: accounts, rooms that are left, listeners that throw.
import assert from "node:assert/strict"
import { test } from "node:test"
import v8 from "node:v8"
import vm from "node:vm"
import { exact } from "../dist/trebuchet-exact.js"
import { build } from "../.build/services/build.js"
import { LiveCollection } from "../.build/services/collection.js"
import { TrebuchetError, Value } from "../dist/trebuchet.js"
import { LiveQuery } from "../.build/services/query.js"
import { OpenRoom } from "../.build/services/room.js"
import { until } from "./daemon.mjs"
import { live, withDaemon } from "./services-daemon.mjs"

/** Clients of a daemon for one test, all signed in. */
const withGuests = (name, body) =>
    withDaemon(name, (make, daemon) =>
        body(async (options) => {
            const each = make(options)
            await each.auth.signInAsGuest()
            await live(each)
            return each
        }, daemon)
    )

const codeOf = (promise) => promise.then(() => "done", ({ code }) => code)
const shows = (room, wanted) => until(room.peers, (peers) => JSON.stringify(peers.map(({ data }) => data.v)) === JSON.stringify(wanted))

withGuests("read documents are shown to no other account, also by queries without observers", async (make) => {
    const app = await make()
    const todos = app.collection("todos")
    await todos.create({ id: "a", title: "Milk" })
    const queries = [todos.query(), todos.pages()]
    for (const query of queries) {
        const end = query.subscribe(() => {})
        await until(query, (items) => items?.length === 1)
        end()
    }
    await new Promise((resolve) => setTimeout(resolve, 150))
    assert.deepEqual(queries.map((query) => query.getSnapshot().length), [1, 1])
    await app.auth.signOut()
    await app.auth.signInAsGuest()
    for (const query of queries) {
        assert.equal(query.getSnapshot(), undefined)
        assert.equal(query.document("a"), undefined)
        assert.equal(query.status.getSnapshot().phase, "waiting")
    }
    const [query] = queries
    query.subscribe(() => {})
    await until(query.status, ({ phase }) => phase === "live")
})

withGuests("a room of closed services fails at once", async (make) => {
    const app = await make()
    const room = app.room("chat-lobby")
    await until(room.status, ({ phase }) => phase === "joined")
    const leaving = app.room("chat-other")
    await until(leaving.status, ({ phase }) => phase === "joined")
    const left = leaving.leave()
    app.close()
    await left
    assert.equal(await codeOf(room.publish("text", 1)), "unavailable")
    await room.leave()
    const late = app.room("chat-late")
    assert.equal(await codeOf(late.publish("text", 1)), "unavailable")
    await late.leave()
})

withGuests("a presence has its value at the time it was set; changes in place are sent when it is set again", async (make) => {
    const [ada, bob] = [await make(), await make()]
    const theirs = bob.room("chat-lobby")
    const presence = { v: 1, at: [{ x: 1 }] }
    const mine = ada.room("chat-lobby", presence)
    presence.v = 2
    await shows(theirs, [1])
    mine.set(presence)
    await shows(theirs, [2])
    presence.at[0].x = 3
    mine.set(presence)
    await until(theirs.peers, ([peer]) => peer.data.at[0].x === 3)
    mine.presence.v = 4
    mine.set(mine.presence)
    await shows(theirs, [4])
})

withGuests("a client that leaves while joining is gone, even if the connection changes meanwhile", async (make) => {
    const [ada, bob] = [await make(), await make()]
    const theirs = bob.room("chat-lobby")
    await until(theirs.status, ({ phase }) => phase === "joined")
    const seen = []
    theirs.peers.subscribe(() => seen.push(theirs.peers.getSnapshot().map(({ data }) => data.v)))
    for (let turn = 0; turn < 5; turn++) {
        const room = ada.room("chat-lobby", { v: "ghost" })
        ada.client.reconnect()
        await room.leave()
        assert.equal(room.status.getSnapshot().phase, "left")
        const again = ada.room("chat-lobby", { v: turn })
        // Otherwise the earlier membership stays for its reconnect time, 10 s.
        await until(theirs.peers, (peers) => peers.some(({ data }) => data.v === turn))
        assert.deepEqual(theirs.peers.getSnapshot().map(({ data }) => data.v), [turn], JSON.stringify(seen))
        await until(again.status, ({ phase }) => phase === "joined")
        assert.deepEqual(again.peers.getSnapshot().filter(({ data }) => data), [])
        await again.leave()
        await shows(theirs, [])
    }
})

withGuests("a client that leaves while joining and joins again without a connection is a member once", async (make) => {
    const [ada, bob] = [await make(), await make()]
    const theirs = bob.room("chat-lobby")
    await until(theirs.status, ({ phase }) => phase === "joined")
    const room = ada.room("chat-lobby", { v: 1 })
    ada.client.reconnect()
    const left = room.leave()
    const again = ada.room("chat-lobby", { v: 2 })
    assert.notEqual(again, room)
    await left
    await until(again.status, ({ phase }) => phase === "joined")
    await shows(theirs, [2])
})

/** A room over an existing connection, and the calls that were made. */
function roomOver(answer, presence, roster) {
    const called = []
    const call = async (target, args) => {
        called.push([target.split("(")[0], args])
        return answer(target, args)
    }
    const store = { subscribe: () => () => {}, getSnapshot: () => ({ phase: "live" }) }
    const state = roster ?? { subscribe: () => () => {}, getSnapshot: () => undefined, status: store }
    const backend = { build, _line: 1, _isLive: true, _account: "ada", _json: exact, _options: {}, _changes: { add: () => () => {} }, client: { actor: () => ({ call, state: () => state }) } }
    return { room: new OpenRoom(backend, "chat-lobby", presence, () => {}), called, backend }
}

test("a client that was kicked from a room can leave it at once", async () => {
    for (const reason of ["roomFull", "kicked", "serverFull"]) {
        const { room, called } = roomOver(() => {
            throw Object.assign(new Error(), { code: "application", data: { [reason]: {} } })
        })
        await room._joined
        await new Promise(setImmediate)
        await room.leave()
        assert.equal(room.status.getSnapshot().phase, "left")
        assert.deepEqual(called.map(([name]) => name), ["join"], reason)
    }
})

test("a signed-in client repeats a join unchanged until its connection is signed in, and joins again after a sign-out", async () => {
    let failures = 0
    const { room, called, backend } = roomOver(() => {
        // The sign-in of the connection takes longer than the client waits for one.
        if (++failures === 5) backend._account = ""
        if (failures === 7) backend._isLive = false
        throw Object.assign(new Error(), { code: "application", data: { notSignedIn: {} } })
    })
    await room._joined
    while (failures < 7) await new Promise((resolve) => setTimeout(resolve, 10))
    const attempts = called.map(([, [, , attempt]]) => attempt)
    assert.equal(new Set(attempts.slice(0, 5)).size, 1)
    assert.notEqual(attempts[5], attempts[4])
})

test("a roster that arrives before the response of the join does not show the client to itself", async () => {
    let respond
    const { room } = roomOver((target) => (target.startsWith("join") ? new Promise((resolve) => (respond = resolve)) : 0))
    await room._joined
    while (!respond) await new Promise(setImmediate)
    room.peers._show([{ id: "own", data: { v: 1 } }, { id: "other", data: { v: 2 } }])
    respond({ token: "t", session: "own", events: { epoch: "e", last: 0 } })
    await until(room.status, ({ phase }) => phase === "joined")
    assert.deepEqual(room.peers.getSnapshot().map(({ id }) => id), ["other"])
})

test("members from before a join are not shown after it", async () => {
    const listeners = new Set()
    let phase = "waiting"
    let members = { former: { id: "former", data: { v: 0 } }, other: { id: "other", data: { v: 1 } } }
    const state = {
        subscribe: () => () => {},
        getSnapshot: () => ({ members }),
        status: { subscribe: (listener) => (listeners.add(listener), () => listeners.delete(listener)), getSnapshot: () => ({ phase }) },
    }
    const ticket = { token: "t", session: "own", events: { epoch: "e", last: 0 } }
    const { room } = roomOver((target) => (target.startsWith("join") ? ticket : 0), undefined, state)
    await room._joined
    await until(room.status, ({ phase }) => phase === "joined")
    assert.deepEqual(room.peers.getSnapshot(), [])
    members = { own: { id: "own", data: { v: 2 } }, other: { id: "other", data: { v: 1 } } }
    phase = "live"
    for (const listener of listeners) listener()
    assert.deepEqual(room.peers.getSnapshot().map(({ id }) => id), ["other"])
})

test("a presence is encoded by the encoder of the options", async () => {
    const { room, called } = roomOver(() => new Promise(() => {}), { cells: [2n ** 60n], none: undefined })
    await room._joined
    // An undefined member is absent, as in JSON.
    assert.deepEqual(called[0][1][0], { cells: [2n ** 60n] })
    assert.equal(room.presence.cells[0], 2n ** 60n)
})

test("a value without a JSON form is an error when it is set, and the previous value stays", async () => {
    const { room, called, backend } = roomOver(() => new Promise(() => {}), { x: 1 })
    await room._joined
    for (const set of [() => room.set({ x: NaN }), () => room.patch({ list: [Infinity] }), () => room.set(() => {})]) {
        assert.throws(set, { code: "invalidArguments", message: /^presence(\/x|\/list\/0)?: .* cannot be sent as JSON$/ })
        assert.deepEqual(room.presence, { x: 1 })
    }
    await assert.rejects(room.publish("at", { y: NaN }), { code: "invalidArguments", message: "payload/y: NaN cannot be sent as JSON" })
    assert.throws(() => new OpenRoom(backend, "chat-lobby", NaN, () => {}), { code: "invalidArguments" })
    assert.equal(called.length, 1)
    room.patch({ x: undefined, y: 2 })
    assert.deepEqual(room.presence, { x: 1, y: 2 })

    const collection = new LiveCollection({ _account: "", _json: JSON, _options: {}, _mine: new Set(), _changes: { add() {} } }, "todos")
    await assert.rejects(collection.create({ id: "a", votes: NaN }), { code: "invalidArguments", message: "commands/0/create/fields/votes: NaN cannot be sent as JSON" })
    await assert.rejects(collection.increment("a", "votes", 5n), { code: "invalidArguments" })
    for (const method of ["query", "pages"]) assert.throws(() => collection[method]({ where: { votes: NaN } }), { code: "invalidArguments" })
})

/** A stream of a state that the test refuses, or updates, at each subscription. */
function refusedState() {
    const [value, status] = [new Value(undefined), new Value({ phase: "waiting" })]
    const state = {
        status,
        asked: 0,
        error: new TrebuchetError("unauthorized", "not allowed"),
        getSnapshot: value.getSnapshot,
        subscribe(listener) {
            state.asked++
            queueMicrotask(() => {
                status.set(state.error ? { phase: "failed", error: state.error } : { phase: "live" })
                if (!state.error) value.set(state.value)
            })
            return value.subscribe(listener)
        },
    }
    return state
}

/** `body` receives the requested delays, which end at once. */
async function withWaits(body) {
    const [waits, before] = [[], globalThis.setTimeout]
    globalThis.setTimeout = (action, milliseconds) => {
        waits.push(milliseconds)
        return before(action, 0)
    }
    try {
        await body(waits)
    } finally {
        globalThis.setTimeout = before
    }
}

const grow = (waits) => waits.forEach((wait, index) => assert.ok(wait > (Math.min(100 * 2 ** index, 10_000) * 0.99) / 2 && wait <= 10_000, `${index}: ${waits}`))
const turn = () => new Promise(setImmediate)

test("a result that is refused repeatedly fails with the error, is requested less and less often, and is shown once permitted", () =>
    withWaits(async (waits) => {
        const state = refusedState()
        const backend = { _line: 1, _isLive: true, _account: "ada", _changes: { add: () => () => {} }, client: { actor: () => ({ state: () => state }) } }
        let opened = 0
        const collection = { _backend: backend, _pending: [], _open: new Set(), _forgetSeen() {}, _show: () => query._show() }
        collection._call = async () => ({ view: "view", number: ++opened, shown: 0, revision: 0 })
        const query = new LiveQuery(collection, { conditions: [], order: [] })
        const phases = []
        query.status.subscribe(() => phases.push(query.status.getSnapshot().phase))
        query.subscribe(() => {})
        while (opened < 12) await turn()
        assert.deepEqual(phases, ["waiting", "failed"])
        assert.equal(query.status.getSnapshot().error, state.error)
        assert.ok(state.asked <= opened)
        grow(waits)
        Object.assign(state, { error: undefined, value: { revision: 1, hasMore: false, documents: [] } })
        await until(query.status, ({ phase }) => phase === "live")
        assert.equal(query.status.getSnapshot().error, undefined)
        assert.deepEqual(query.getSnapshot(), [])
    }))

for (const stream of ["roster", "events"]) {
    test(`a room whose ${stream} are refused repeatedly reports the reason, and is joined less and less often`, () =>
        withWaits(async (waits) => {
            const state = refusedState()
            const shown = Object.assign(refusedState(), { error: undefined, value: { members: {} } })
            const { room, called, backend } = roomOver((target) => (target === "join(presence:token:attempt:)" ? { token: "t", session: "s", events: { epoch: "e", last: 0 } } : []), { v: 1 })
            const events = {
                status: state.status,
                subscribe(listener, failed) {
                    const ends = [state.subscribe(listener), state.status.subscribe(() => state.status.getSnapshot().error && failed(state.error))]
                    return () => ends.forEach((end) => end())
                },
            }
            const { call } = backend.client.actor()
            backend.client = { actor: () => ({ call, state: () => (stream === "roster" ? state : shown), events: () => events }) }
            if (stream === "events") room.subscribe("at", () => {})
            const joins = () => called.filter(([name]) => name === "join").length
            // Its presence is sent each time and does not count.
            for (let count = 0; joins() < 12; await turn()) if (joins() > count) room.set({ v: (count = joins()) })
            assert.equal(room.status.getSnapshot().error, state.error)
            grow(waits.slice(0, 8))
            Object.assign(state, { error: undefined, value: { members: {} } })
            await until(room.status, ({ phase, error }) => phase === "joined" && !error)
        }))
}

test("a client retains the newest 64 memberships of a roster, each of at most 256 characters", async () => {
    let joins = 0
    const stays = [...Array.from({ length: 100 }, (_, number) => `s${number}`), "s99", "x".repeat(257)]
    const { room } = roomOver((target) => {
        if (target.startsWith("join")) return { token: "t", session: stays[joins++], events: { epoch: "e", last: 0 } }
        return joins < stays.length ? Promise.reject(Object.assign(new Error(), { code: "application", data: { notJoined: {} } })) : 0
    })
    await withWaits(async () => {
        for (let count = 0; joins < stays.length; await turn()) if (joins > count) room.set({ v: (count = joins) })
    })
    assert.deepEqual([...(await room._joined)._sessions], stays.slice(36, 100))
})

test("events that arrive during a request for earlier ones do not accumulate: they are requested once more", async () => {
    const [requests, taken] = [[], []]
    let came
    const events = { status: { subscribe: () => () => {}, getSnapshot: () => ({ phase: "live" }) }, subscribe: (listener) => ((came = listener), () => {}) }
    const { room, backend } = roomOver((target) => {
        if (target.startsWith("join")) return { token: "t", session: "s", events: { epoch: "e", last: 0 } }
        return target.startsWith("history") ? new Promise((resolve) => requests.push(resolve)) : 0
    })
    const { call, state } = backend.client.actor()
    backend.client = { actor: () => ({ call, state, events: () => events }) }
    room.subscribe("at", ({ number }) => taken.push(number))
    await until(room.status, ({ phase }) => phase === "joined")
    const event = (number) => ({ number, topic: "at", peer: "p", payload: 1 })
    for (let number = 1; number <= 10_000; number++) came(event(number))
    const joined = await room._joined
    assert.ok(joined._incoming.length <= 256, String(joined._incoming.length))
    requests.shift()([])
    while (!requests.length) await turn()
    // The room has retained these.
    requests.shift()(Array.from({ length: 1000 }, (_, index) => event(9_001 + index)))
    while (joined._isTaking) await turn()
    assert.deepEqual(taken, Array.from({ length: 1000 }, (_, index) => 9_001 + index))
    assert.equal(room.status.getSnapshot().missed, 9_000)
    joined._leave()
})

test("unreferenced queries are released", async () => {
    v8.setFlagsFromString("--expose-gc")
    const collect = vm.runInNewContext("gc")
    const collection = new LiveCollection({ _account: "", _json: JSON, _options: {}, _changes: { add() {} } }, "todos")
    const held = collection.query({ limit: 1 })
    for (let index = 0; index < 100; index++) {
        collection.query({ where: { title: String(index) } })
        collection.pages({ where: { title: String(index) } })
    }
    // The garbage collector reports them later.
    for (const end = Date.now() + 20_000; collection._queries.size > 1; await new Promise(setImmediate)) {
        assert.ok(Date.now() < end, collection._queries.size + " queries are known still")
        collect()
    }
    assert.equal(collection.query({ limit: 1 }), held)
})

const turns = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
}
const unreadable = () => {
    throw Object.assign(new Error("half of a surrogate pair"), { code: "invalidArguments" })
}

test("a presence that the server cannot decode does not end the membership, and the next one is shown", async () => {
    const answer = (target, [presence]) => {
        if (presence?.v === "bad") unreadable()
        return { token: "t", session: "s", events: { epoch: "e", last: 0 } }
    }
    const { room, called } = roomOver(answer, { v: "bad" })
    await until(room.status, ({ phase }) => phase === "joined")
    assert.equal(room.status.getSnapshot().error.code, "invalidArguments")
    room.set({ v: "good" })
    await until(room.status, ({ phase, error }) => phase === "joined" && !error)
    room.set({ v: "bad" })
    await until(room.status, ({ error }) => error)
    assert.equal(room.status.getSnapshot().phase, "joined")
    room.set({ v: "better" })
    await until(room.status, ({ error }) => !error)
    assert.deepEqual(called.map(([name, [presence]]) => [name, presence?.v]), [
        ["join", "bad"], ["join", undefined], ["setPresence", "good"], ["setPresence", "bad"], ["setPresence", "better"],
    ])
})

test("a room that could not be joined can be left at once, whatever the reason", async () => {
    for (const code of ["invalidArguments", "actorNotFound", "unauthorized"]) {
        const { room, called } = roomOver(() => {
            throw Object.assign(new Error(), { code })
        })
        await until(room.status, ({ phase }) => phase === "failed")
        assert.equal(await codeOf(room.publish("say", 1)), code)
        await room.leave()
        assert.equal(room.status.getSnapshot().phase, "left")
        assert.deepEqual(called.map(([name]) => name), ["join"], code)
    }
})

test("a published event has its value at the time of the call, and is sent only by its account", async () => {
    let release
    const gate = new Promise((resolve) => (release = resolve))
    const published = []
    const { room, backend } = roomOver(async (target, [, payload]) => {
        if (target.startsWith("join")) return { token: "t", session: "s", events: { epoch: "e", last: 0 } }
        await gate
        return published.push(payload)
    })
    await until(room.status, ({ phase }) => phase === "joined")
    const payload = { x: 1 }
    const results = [1, 2, 3].map((x) => {
        payload.x = x
        return codeOf(room.publish("say", payload))
    })
    await turns()
    assert.equal(room._publishing, 3)
    backend._account = "bob"
    results.push(codeOf(room.publish("say", { x: 4 })))
    release()
    // The first event was sent already.
    assert.deepEqual(await Promise.all(results), ["done", "unauthenticated", "unauthenticated", "done"])
    assert.deepEqual(published, [{ x: 1 }, { x: 4 }])
    assert.equal(room._publishing, 0)
})

withGuests("events are published before a sign-out completes", async (make) => {
    const [ada, bob] = [await make(), await make()]
    const theirs = bob.room("chat-lobby")
    const heard = []
    theirs.subscribe("say", ({ payload }) => heard.push(payload))
    const mine = ada.room("chat-lobby", {})
    for (const room of [mine, theirs]) await until(room.status, ({ phase }) => phase === "joined")
    const results = Array.from({ length: 50 }, (_, index) => codeOf(mine.publish("say", index)))
    await ada.auth.signOut()
    assert.deepEqual(new Set(await Promise.all(results)), new Set(["done"]))
})

test("a value without a JSON form rejects the promise, and exact numbers are written and persisted", async () => {
    const kept = []
    const pending = { claim: async () => true, add: async (write) => void kept.push(structuredClone(write)) }
    const collectionOf = (options, _json) =>
        new LiveCollection({ _account: "", _json, _options: options, _store: pending, _mine: new Set(), _changes: { add() {} } }, "todos")
    const plain = collectionOf({}, JSON)
    assert.equal(await codeOf(plain.update("a", { n: 2n ** 60n })), "invalidArguments")
    const numbers = collectionOf({ json: exact }, exact)
    const [number] = exact.parse("[12345678901234567890]")
    numbers.update("a", { n: 2n ** 60n, number }).catch(() => {})
    for (const end = Date.now() + 20_000; !kept.length; await new Promise(setImmediate)) assert.ok(Date.now() < end)
    assert.match(kept[0].json, /"n":1152921504606846976,"number":12345678901234567890/)
})

test("pages grow up to the maximum of the server", () => {
    const backend = { _account: "", _line: 1, _isLive: false }
    const query = new LiveQuery({ _backend: backend, _pending: [] }, { conditions: [], order: [], limit: 9_990 })
    for (const limit of [10_000, 10_000]) {
        query._result = { revision: 1, hasMore: true, documents: Array.from({ length: query._query.limit }, (_, id) => ({ id: String(id), fields: {} })) }
        query.more()
        assert.equal(query._query.limit, limit)
    }
})
