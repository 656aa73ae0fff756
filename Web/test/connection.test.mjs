import assert from "node:assert/strict"
import { test } from "node:test"
import { backoff } from "../.build/backoff.js"
import { codeOf, settle, FakeEnvironment } from "./fakes.mjs"

const phase = (client) => client.status.getSnapshot().phase
const errorOf = (client) => client.status.getSnapshot().error?.code

test("the delay doubles with each failure up to the maximum, and is random from 0", () => {
    // The failures, the random number, the delay.
    const table = [
        [0, 1, 0], [1, 1, 200], [2, 1, 400], [3, 1, 800], [6, 1, 6400], [7, 1, 10000], [1000, 1, 10000], [5, 0, 0], [2, 0.5, 200],
    ]
    for (const [failures, random, wait] of table) assert.equal(backoff(failures, 200, 10000, random), wait)
})

test("the client sends hello after opening, and is live with the response", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    assert.equal(phase(client), "connecting")
    await settle()
    assert.deepEqual(fake.socket.protocols, ["trebuchet.v3"])
    fake.socket.open()
    assert.deepEqual(fake.socket.take(), [{ type: "hello", payload: {} }])
    assert.equal(phase(client), "connecting")
    fake.socket.receive("hello", { session: "a", limits: {} })
    assert.equal(phase(client), "live")
    assert.equal(client.status.getSnapshot(), client.status.getSnapshot())
})

test("a connection to a server without hello is live, too", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    await settle()
    fake.socket.open()
    fake.socket.receive("error", { code: "malformedEnvelope", message: "hello?" })
    assert.equal(phase(client), "live")
})

test("a lost connection is stale, and is retried with doubling delays until one has lasted", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const waits = []
    fake.socket.lose()
    for (let failure = 1; failure <= 8; failure++) {
        assert.equal(phase(client), "stale")
        waits.push(client.status.getSnapshot().retryAt - fake.time)
        assert.equal(client.status.getSnapshot().failures, failure)
        await fake.pass(waits.at(-1))
        // An established connection alone does not reset the delay.
        failure % 2 ? fake.socket.lose() : (fake.socket.greet(), fake.socket.lose())
    }
    assert.deepEqual(waits, [200, 400, 800, 1600, 3200, 6400, 10000, 10000])
    await fake.pass(10000)
    fake.socket.greet()
    assert.equal(phase(client), "live")
    assert.equal(errorOf(client), undefined)
    await fake.pass(9_999)
    fake.socket.lose()
    assert.equal(client.status.getSnapshot().failures, 10)
    await fake.pass(10_000)
    fake.socket.greet()
    await fake.pass(10_000)
    fake.socket.lose()
    assert.equal(client.status.getSnapshot().retryAt - fake.time, 200)
})

test("a connection attempt without a result within 10 s is abandoned", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    await fake.pass(9_999)
    assert.equal(fake.socket.wasClosed, undefined)
    await fake.pass(1)
    assert.equal(fake.socket.wasClosed, true)
    await fake.pass(200)
    assert.equal(fake.sockets.length, 2)
    // Late events of the old socket are ignored.
    fake.sockets[0].greet()
    fake.sockets[0].lose()
    assert.equal(phase(client), "connecting")
    fake.socket.greet()
    assert.equal(phase(client), "live")
})

test("a half-open connection is detected within 45 s on a visible page", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const { socket } = fake
    socket.take()
    await fake.pass(19_999)
    assert.deepEqual(socket.take(), [])
    await fake.pass(1)
    assert.deepEqual(socket.take(), [{ type: "hello", payload: {} }])
    // Any message shows that the connection works.
    socket.receive("hello", { session: "a" })
    await fake.pass(20_000)
    assert.equal(socket.take("hello").length, 1)
    socket.receive("unknownKind", {})
    await fake.pass(29_999)
    assert.equal(phase(client), "live")
    await fake.pass(15_000)
    assert.notEqual(phase(client), "live")
    assert.equal(socket.wasClosed, true)
})

test("a half-open connection is detected within 45 s after the clock was set back", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    await fake.pass(5000)
    fake.time -= 3_600_000
    for (const timer of fake.timers.values()) timer.at -= 3_600_000
    await fake.pass(45_000)
    assert.notEqual(phase(client), "live")
})

test("a connection that receives messages is not probed", async () => {
    const fake = new FakeEnvironment()
    await fake.live()
    fake.socket.take()
    for (let round = 0; round < 20; round++) {
        await fake.pass(10_000)
        fake.socket.receive("unknownKind", {})
    }
    assert.deepEqual(fake.socket.take(), [])
})

test("a hidden page does not probe, and probes at once when it becomes visible", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.take()
    fake.visible = false
    fake.wake()
    await fake.pass(600_000)
    assert.deepEqual(fake.socket.take(), [])
    assert.equal(phase(client), "live")
    fake.visible = true
    fake.wake()
    assert.deepEqual(fake.socket.take("hello"), [{}])
    await fake.pass(10_000)
    assert.equal(phase(client), "stale")
})

test("a page that becomes visible repeatedly does not postpone the end of a dead connection", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.take()
    for (let round = 0; round < 10; round++) {
        fake.wake()
        await fake.pass(999)
    }
    assert.equal(fake.socket.take("hello").length, 1)
    await fake.pass(10)
    assert.equal(phase(client), "stale")
})

test("a connection is abandoned sooner after a change of the network", async () => {
    for (const [events, time] of [[["offline"], 3_000], [["visibilitychange", "online"], 3_500], [["online", "online"], 3_000]]) {
        const fake = new FakeEnvironment()
        const client = await fake.live()
        fake.socket.take()
        for (const [index, event] of events.entries()) {
            if (index) await fake.pass(500)
            fake.wake(event)
        }
        assert.equal(fake.socket.take("hello").length, 1)
        await fake.pass(time - 500 * (events.length - 1) - 1)
        assert.equal(phase(client), "live")
        await fake.pass(1)
        assert.equal(phase(client), "stale", events.join())
    }
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.wake("online")
    fake.socket.receive("hello", {})
    await fake.pass(19_999)
    assert.equal(phase(client), "live")
})

test("a draining connection is abandoned when it does not respond", async () => {
    for (const leave of [(fake) => fake.socket.receive("goAway", { reconnectAfterMilliseconds: 0 }), (fake, client) => client.reconnect()]) {
        const fake = new FakeEnvironment()
        fake.chance = 0
        const client = await fake.live()
        const call = client.actor("a").call("wait()", [], { timeout: 0 }).result()
        const old = fake.socket
        assert.equal(old.take("invocation").length, 1)
        leave(fake, client)
        await fake.pass(0)
        fake.socket.greet()
        // While it sends messages the client waits for it.
        for (let round = 0; round < 5; round++) {
            await fake.pass(19_000)
            old.receive("hello", {})
            fake.socket.receive("hello", {})
        }
        assert.equal(old.wasClosed, undefined)
        await fake.pass(30_000)
        assert.equal(old.wasClosed, true)
        assert.equal((await call).error.code, "unknownOutcome")
    }
})

test("a listener that closes or reconnects takes effect at once, without a second connection", async () => {
    const ends = { lose: (fake) => fake.socket.lose(), goAway: (fake) => fake.socket.receive("goAway", {}), reconnect: (fake, client) => client.reconnect() }
    for (const [end, cause] of Object.entries(ends)) {
        for (const what of ["close", "reconnect"]) {
            for (const listened of ["state", "client"]) {
                const fake = new FakeEnvironment()
                const client = await fake.live()
                const state = client.actor("a").state()
                state.subscribe(() => {})
                const { callID } = fake.socket.take("invocation")[0]
                fake.socket.receive("streamStart", { streamID: "s1", callID, epoch: "e" })
                fake.socket.receive("streamData", { streamID: "s1", sequenceNumber: 1, data: 1 })
                let isDone = false
                const { status } = listened === "state" ? state : client
                status.subscribe(() => {
                    if (isDone || status.getSnapshot().phase === "live") return
                    isDone = true
                    client[what]()
                })
                cause(fake, client)
                await fake.pass(60_000)
                const text = [end, what, listened].join()
                const open = fake.sockets.filter(({ wasClosed, readyState }) => !wasClosed && readyState !== 3)
                if (what === "close" && isDone) assert.equal(open.length, 0, text)
                else assert.ok(open.length <= 1, text)
                client.close()
                assert.equal(fake.sockets.filter(({ wasClosed, readyState }) => !wasClosed && readyState !== 3).length, 0, text)
                assert.equal(fake.timers.size, 0, text)
            }
        }
    }
})

test("a sign-out notice before the hello is not reverted by the hello", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect({ token: "t" })
    await settle()
    fake.socket.open()
    fake.socket.receive("error", { code: "unauthenticated", message: "ended" })
    assert.equal(phase(client), "refused")
})

test("a return of the network or the page shortens the delay, but not a delay set by the server", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.lose()
    for (let round = 0; round < 8; round++) {
        await fake.pass(10_000)
        fake.socket.lose()
    }
    const { length } = fake.sockets
    fake.visible = false
    fake.wake()
    await settle()
    assert.equal(fake.sockets.length, length)
    fake.visible = true
    fake.wake()
    await settle()
    assert.equal(fake.sockets.length, length + 1)
    fake.wake()
    await settle()
    assert.equal(fake.sockets.length, length + 1)
    fake.socket.greet()
    fake.chance = 0
    fake.socket.receive("goAway", { reason: "draining", reconnectAfterMilliseconds: 5_000 })
    assert.equal(phase(client), "stale")
    fake.wake()
    await settle()
    assert.equal(fake.sockets.length, length + 1)
    await fake.pass(5_000)
    assert.equal(fake.sockets.length, length + 2)
})

test("a server can delay a reconnection by at most a minute", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.receive("goAway", { reconnectAfterMilliseconds: 1e12 })
    assert.equal(client.status.getSnapshot().retryAt - fake.time, 60_000)
})

test("a server that drains each client at once is contacted less and less often", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    await settle()
    const waits = []
    for (let round = 0; round < 4; round++) {
        fake.socket.greet()
        fake.socket.receive("goAway", { reconnectAfterMilliseconds: 1 })
        waits.push(client.status.getSnapshot().retryAt - fake.time)
        await fake.pass(waits.at(-1))
    }
    assert.deepEqual(waits, [200, 400, 800, 1600])
})

test("a listener that another listener removes is not called any more", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    const seen = []
    client.status.subscribe(() => end())
    const end = client.status.subscribe(() => seen.push("called"))
    await settle()
    fake.socket.greet()
    assert.deepEqual(seen, [])
})

test("without a network the phase is offline, and attempts continue", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.online = false
    fake.wake()
    assert.equal(phase(client), "live")
    fake.socket.lose()
    assert.equal(phase(client), "offline")
    await fake.pass(200)
    assert.equal(fake.sockets.length, 2)
    fake.socket.lose()
    fake.online = true
    fake.wake()
    await settle()
    assert.equal(phase(client), "stale")
    assert.equal(fake.sockets.length, 3)
})

test("a token is requested before each connection, and sent as a subprotocol", async () => {
    const fake = new FakeEnvironment()
    let count = 0
    const client = await fake.live({ token: async () => `a.b-${++count}_~+` })
    assert.deepEqual(fake.socket.protocols, ["trebuchet.v3", "bearer.a.b-1_~+"])
    fake.socket.lose()
    await fake.pass(200)
    assert.deepEqual(fake.socket.protocols, ["trebuchet.v3", "bearer.a.b-2_~+"])
    client.close()
    const other = new FakeEnvironment()
    other.connect({ token: () => null })
    await settle()
    assert.deepEqual(other.socket.protocols, ["trebuchet.v3"])
})

test("a token that is not available is requested again", async () => {
    const fake = new FakeEnvironment()
    let fails = true
    const client = fake.connect({
        token() {
            if (fails) throw new Error("no network")
            return "t"
        },
    })
    await settle()
    assert.equal(errorOf(client), "unauthenticated")
    assert.equal(phase(client), "connecting")
    assert.equal(fake.sockets.length, 0)
    fails = false
    await fake.pass(200)
    fake.socket.greet()
    assert.equal(phase(client), "live")
})

test("an invalid token is refused, and the error does not contain it", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect({ token: "secret token" })
    await fake.pass(100_000)
    assert.equal(phase(client), "refused")
    assert.equal(fake.sockets.length, 0)
    assert.doesNotMatch(client.status.getSnapshot().error.message, /secret/)
})

test("the HTTP status of the server, where the socket reports it", async () => {
    // The status, the token, the phase, the code, whether the client retries.
    const table = [
        [401, undefined, "refused", "unauthenticated", false],
        [401, "t", "refused", "unauthenticated", false],
        [401, () => "t", "refused", "unauthenticated", true],
        [403, () => "t", "refused", "unauthorized", false],
        [503, undefined, "connecting", "unavailable", true],
        [undefined, undefined, "connecting", "unavailable", true],
    ]
    for (const [status, token, expected, code, goesOn] of table) {
        const fake = new FakeEnvironment()
        const client = fake.connect({ token })
        await settle()
        fake.socket.lose(1006, status ? `Unexpected server response: ${status}` : "")
        assert.equal(phase(client), expected)
        assert.equal(errorOf(client), code)
        await fake.pass(100_000)
        assert.equal(fake.sockets.length > 1, goesOn, `${status} ${token}`)
        if (goesOn) continue
        // It retries on request.
        client.reconnect()
        await settle()
        fake.socket.greet()
        assert.equal(phase(client), "live")
    }
})

test("in a browser the error has the information that is available", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    await settle()
    fake.socket.lose()
    assert.match(client.status.getSnapshot().error.message, /is unreachable, or rejects/)
})

test("a server with another subprotocol is refused", async () => {
    const fake = new FakeEnvironment()
    const client = fake.connect()
    await settle()
    fake.socket.open("")
    assert.equal(phase(client), "refused")
    assert.equal(fake.socket.wasClosed, true)
    await fake.pass(100_000)
    assert.equal(fake.sockets.length, 1)
})

test("after a sign-out the client connects with another token", async () => {
    const fake = new FakeEnvironment()
    let count = 0
    const client = await fake.live({ token: () => `t${++count}` })
    fake.socket.receive("error", { code: "unauthenticated", message: "signed out" })
    assert.equal(fake.socket.wasClosed, true)
    assert.equal(phase(client), "stale")
    assert.equal(errorOf(client), "unauthenticated")
    await fake.pass(200)
    assert.deepEqual(fake.socket.protocols, ["trebuchet.v3", "bearer.t2"])
    fake.socket.greet()
    assert.equal(errorOf(client), undefined)
})

test("without another token the client is refused, and calls that allow anonymous callers continue", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({ token: "t" })
    fake.socket.receive("error", { code: "unauthenticated", message: "signed out" })
    assert.equal(phase(client), "refused")
    assert.equal(fake.socket.wasClosed, undefined)
    const call = client.actor("auth").call("signIn()")
    const [{ callID }] = fake.socket.take("invocation")
    fake.socket.receive("response", { callID, result: 1 })
    assert.equal(await call, 1)
})

test("invalid messages end the connection, and nothing else", async () => {
    const bad = [
        "", "{", "null", "7", '"x"', "[]", "{}", '{"type":"response"}', '{"type":"streamStart"}', '{"type":"streamData","payload":null}',
        '{"type":"hello"}', '{"type":"goAway"}', "[".repeat(100_000),
    ]
    for (const text of bad) {
        const fake = new FakeEnvironment()
        const client = await fake.live()
        const state = client.actor("a").state()
        state.subscribe(() => {})
        const call = client.actor("a").call("f()").result()
        fake.socket.receiveText(text)
        assert.equal(fake.socket.wasClosed, true, text)
        assert.equal(phase(client), "stale", text)
        assert.equal((await call).error.code, "unknownOutcome")
        await fake.pass(200)
        fake.socket.greet()
        assert.equal(phase(client), "live")
    }
})

test("messages of unknown kinds, or for unknown calls, are ignored", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.receive("novelty", { a: 1 })
    fake.socket.receive("response", { callID: "99", result: 1 })
    fake.socket.receive("response", { callID: "x", error: { code: "internal" } })
    fake.socket.receive("streamData", { streamID: "s9", sequenceNumber: 1, data: 1 })
    fake.socket.receive("streamEnd", { streamID: "s9", reason: "completed" })
    fake.socket.receive("streamError", { streamID: "s9", code: "internal" })
    fake.socket.receive("error", { code: "malformedEnvelope", message: "?" })
    assert.equal(phase(client), "live")
})

test("an error of a listener does not affect other listeners", async () => {
    const told = []
    const before = console.error
    console.error = (error) => told.push(error.message)
    try {
        const fake = new FakeEnvironment()
        const client = fake.connect()
        const seen = []
        client.status.subscribe(() => {
            throw new Error("mine")
        })
        client.status.subscribe(() => seen.push(phase(client)))
        await settle()
        fake.socket.greet()
        assert.deepEqual(seen, ["live"])
        assert.deepEqual(told, ["mine"])
    } finally {
        console.error = before
    }
})

test("a closed client is offline permanently, and releases everything", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    client.actor("a").state().subscribe(() => {})
    const call = client.actor("a").call("f()")
    client.close()
    client.close()
    client.reconnect()
    assert.equal((await call.result()).error.code, "unknownOutcome")
    assert.equal((await client.actor("a").call("f()").result()).error.code, "unavailable")
    assert.equal(phase(client), "offline")
    await fake.pass(100_000)
    assert.equal(fake.sockets.length, 1)
    assert.equal(fake.socket.wasClosed, true)
    assert.equal(fake.timers.size, 0)
    assert.equal(fake.listeners.size, 0)
})

test("a client that is closed while it requests a token opens no socket", async () => {
    const fake = new FakeEnvironment()
    let give
    const client = fake.connect({ token: () => new Promise((resolve) => (give = resolve)) })
    await settle()
    client.close()
    give("t")
    await settle()
    assert.equal(fake.sockets.length, 0)
    assert.equal(fake.timers.size, 0)
})

test("reconnect() opens another connection, and sent calls are answered over the old one", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const call = client.actor("a").call("f()")
    const old = fake.socket
    const [{ callID }] = old.take("invocation")
    client.reconnect()
    await settle()
    assert.equal(fake.sockets.length, 2)
    fake.socket.greet()
    assert.equal(old.wasClosed, undefined)
    old.receive("response", { callID, result: "late" })
    assert.equal(await call, "late")
    assert.equal(old.wasClosed, true)
    assert.equal(phase(client), "live")
})

test("addresses", async () => {
    const { connect } = await import("../dist/trebuchet.js")
    const table = [
        ["ws://a:1", "ws://a:1/"], ["wss://a/x", "wss://a/x"], ["http://a", "ws://a/"], ["https://a/b?c", "wss://a/b?c"],
        [new URL("https://a"), "wss://a/"],
    ]
    for (const [url, expected] of table) {
        const fake = new FakeEnvironment()
        let seen
        const client = connect(url, {
            environment: fake.environment,
            WebSocket: class {
                constructor(url) {
                    seen = url
                }
                close() {}
            },
        })
        await settle()
        assert.equal(seen, expected)
        client.close()
    }
    // Outside of a page there is no base URL.
    for (const url of ["nonsense", "/", "", "http://"]) {
        const client = connect(url, {
            environment: new FakeEnvironment().environment,
            WebSocket: class {
                constructor(url) {
                    new URL(url)
                }
            },
        })
        await settle()
        const { phase, error } = client.status.getSnapshot()
        assert.deepEqual([phase, error?.message], ["refused", `no WebSocket class, or no address: ${url}`])
        client.close()
    }
})

test("reconnect() during a connection attempt requests the token again, because the account may have changed", async () => {
    const fake = new FakeEnvironment()
    let who = "ada"
    const client = fake.connect({ token: async () => who })
    await settle()
    const [first] = fake.sockets
    who = "bob"
    client.reconnect()
    await settle()
    assert.equal(fake.sockets.length, 2)
    assert.ok(first.wasClosed)
    assert.deepEqual(fake.socket.protocols, ["trebuchet.v3", "bearer.bob"])
    first.open()
    assert.deepEqual(first.sent, [])
    fake.socket.greet()
    assert.equal(phase(client), "live")
    await fake.pass(10_000)
    assert.equal(phase(client), "live")
    client.close()
    assert.equal(fake.timers.size, 0)
})

test("a draining connection that breaks while the page is hidden is detected when it becomes visible", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const first = fake.socket
    const call = client.actor("a").call("f()", [], { timeout: 0 })
    client.reconnect()
    await settle()
    fake.socket.greet()
    fake.visible = false
    fake.wake()
    await fake.pass(40_000)
    fake.visible = true
    first.take()
    fake.wake()
    assert.deepEqual(first.take("hello"), [{}])
    fake.socket.receive("hello", { limits: {} })
    await fake.pass(10_000)
    await assert.rejects(call, { code: "unknownOutcome" })
    assert.equal(phase(client), "live")
})

test("with several addresses each attempt uses the next one, and a whole round counts as one failure", async () => {
    const fake = new FakeEnvironment()
    fake.chance = 0.5
    const addresses = ["ws://a/", "ws://b/", "ws://c/"]
    const client = fake.connect({}, addresses)
    await settle()
    const places = () => fake.sockets.map(({ url }) => url)
    // The first address is random.
    assert.deepEqual(places(), ["ws://b/"])
    fake.chance = 1
    const waits = []
    for (let attempt = 1; attempt <= 7; attempt++) {
        fake.socket.lose()
        const { retryAt } = client.status.getSnapshot()
        waits.push(retryAt - fake.time)
        await fake.pass(retryAt - fake.time)
    }
    assert.deepEqual(places(), ["b", "c", "a", "b", "c", "a", "b", "c"].map((name) => `ws://${name}/`))
    assert.deepEqual(waits, [200, 200, 200, 400, 400, 400, 800])
    client.close()
})

test("after goAway the client connects to another address at once", async () => {
    const fake = new FakeEnvironment()
    fake.chance = 0
    const client = fake.connect({}, ["ws://a/", "ws://b/"])
    await settle()
    fake.socket.greet({ session: "s" })
    const first = fake.socket
    assert.equal(first.url, "ws://a/")
    first.receive("goAway", { reconnectAfterMilliseconds: 30_000 })
    await fake.pass(0)
    assert.equal(fake.socket.url, "ws://b/")
    assert.equal(fake.sockets.length, 2)
    fake.socket.greet({ session: "t" })
    assert.equal(client.status.getSnapshot().phase, "live")
    client.close()
})

test("an error names the address of the attempt", async () => {
    const fake = new FakeEnvironment()
    fake.chance = 0
    const client = fake.connect({}, ["ws://a/", "ws://b/"])
    await settle()
    fake.socket.lose()
    assert.match(client.status.getSnapshot().error.message, /ws:\/\/a\//)
    await fake.pass(0)
    fake.socket.lose()
    assert.match(client.status.getSnapshot().error.message, /ws:\/\/b\//)
    client.close()
})

const refuse = (socket, status) => socket.lose(1006, `Unexpected server response: ${status}`)

test("one refusing address of several does not end the attempts", async () => {
    const fake = new FakeEnvironment()
    fake.chance = 0
    const client = fake.connect({}, ["ws://a/", "ws://b/"])
    await settle()
    refuse(fake.socket, 403)
    assert.equal(errorOf(client), "unauthorized")
    assert.notEqual(phase(client), "refused")
    // Neither do repeated temporary failures of the other address.
    for (let round = 0; round < 5; round++) {
        await fake.pass(0)
        fake.socket.lose()
        await fake.pass(0)
        refuse(fake.socket, 403)
        assert.notEqual(phase(client), "refused")
    }
    await fake.pass(0)
    assert.equal(fake.socket.url, "ws://b/")
    fake.socket.greet()
    assert.equal(phase(client), "live")
    // Earlier refusals do not count any more.
    fake.socket.receive("goAway", {})
    await fake.pass(0)
    refuse(fake.socket, 403)
    assert.notEqual(phase(client), "refused")
    client.close()
})

test("when all addresses have refused, the client stops until it is asked to reconnect", async () => {
    const outcomes = [
        // The response of each address, the token, whether the client retries.
        [[403, 403], () => "t", false],
        [[401, 401], "t", false],
        // Another token may be accepted.
        [[401, 401], () => "t", true],
        [[401, 403], () => "t", true],
    ]
    for (const [[first, second], token, goesOn] of outcomes) {
        const text = `${first} ${second} ${typeof token}`
        const fake = new FakeEnvironment()
        fake.chance = 0
        const client = fake.connect({ token }, ["ws://a/", "ws://b/"])
        await settle()
        refuse(fake.socket, first)
        await fake.pass(0)
        assert.equal(phase(client), "connecting", text)
        const call = client.actor("x").call("y()").result()
        refuse(fake.socket, second)
        assert.equal(phase(client), "refused", text)
        await fake.pass(20_000)
        assert.equal(fake.sockets.length > 2, goesOn, text)
        if (!goesOn) {
            assert.equal((await call).error.code, "unavailable", text)
            client.reconnect()
            await settle()
            refuse(fake.socket, first)
            assert.equal(phase(client), "connecting", text)
            await fake.pass(0)
        }
        fake.socket.greet()
        assert.equal(phase(client), "live", text)
        client.close()
    }
})

test("an invalid address or token is refused at once, with several addresses too", async () => {
    const wrong = [
        [["ws://a/", "no address"], {}], [["no address", "ws://b/"], {}], [["http://[", "http://["], {}],
        [["ws://a/", "ws://b/"], { token: "no token" }], [["ws://a/", "ws://b/"], { token: () => "no token" }],
    ]
    for (const [addresses, options] of wrong) {
        const fake = new FakeEnvironment()
        fake.chance = 0
        const client = fake.connect(options, addresses)
        const call = client.actor("x").call("y()").result()
        await fake.pass(100_000)
        assert.equal(phase(client), "refused", addresses)
        assert.equal(client.status.getSnapshot().failures, 1)
        assert.equal((await call).error.code, "unavailable")
        assert.equal(fake.sockets.length, 0)
        client.close()
    }
})

const phaseOf = (client) => client.status.getSnapshot().phase

for (const [rest, more, wake] of [["pagehide", { persisted: true }, "pageshow"], ["freeze", {}, "resume"]]) {
    test(`a suspended page (${rest}) has no connection and reports it; a resumed page connects at once`, async () => {
        const fake = new FakeEnvironment()
        const client = await fake.live()
        const state = client.actor("a").state()
        state.subscribe(() => {})
        const [{ callID }] = fake.socket.take("invocation")
        fake.socket.receive("streamStart", { streamID: "s", callID, epoch: "e", sequenceNumber: 0 })
        fake.socket.receive("streamData", { streamID: "s", sequenceNumber: 1, data: 1 })
        const sent = codeOf(client.actor("a").call("f()"))
        const repeated = client.actor("a").call("g()", [], { idempotent: true })
        const [before] = fake.sockets
        fake.visible = false
        fake.wake(rest, more)
        assert.ok(before.wasClosed)
        assert.deepEqual([phaseOf(client), state.status.getSnapshot().phase, state.getSnapshot()], ["stale", "stale", 1])
        assert.equal(await sent, "unknownOutcome")
        // No attempt is made, and calls are queued.
        const waiting = client.actor("a").call("h()")
        client.reconnect()
        fake.wake("visibilitychange")
        await fake.pass(20_000)
        assert.equal(fake.sockets.length, 1)
        assert.equal(client.status.getSnapshot().retryAt, undefined)
        fake.wake(wake)
        await settle()
        assert.equal(fake.sockets.length, 2)
        assert.equal(phaseOf(client), "stale")
        fake.socket.greet()
        assert.equal(phaseOf(client), "live")
        assert.equal(client.status.getSnapshot().error, undefined)
        const asked = fake.socket.sent.map(({ type, payload }) => payload.targetIdentifier ?? type)
        assert.deepEqual(asked, ["hello", "observeState", "g()", "h()"])
        client.close()
        assert.deepEqual([await codeOf(repeated), await codeOf(waiting)], ["unknownOutcome", "unknownOutcome"])
    })
}

test("a page that ends is not suspended, and a visible page runs", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.wake("pagehide", { persisted: false })
    assert.equal(phaseOf(client), "live")
    fake.wake("freeze")
    assert.equal(phaseOf(client), "stale")
    fake.wake("visibilitychange")
    await settle()
    fake.socket.greet()
    assert.equal(phaseOf(client), "live")
})

test("a suspended page does not reconnect a refused or closed client, and starts no attempt twice", async () => {
    const fake = new FakeEnvironment()
    const refused = fake.connect()
    await settle()
    fake.socket.lose(1006, "Unexpected server response: 403")
    assert.equal(phaseOf(refused), "refused")
    const closed = await fake.live()
    closed.close()
    let given
    const slow = fake.connect({ token: () => new Promise((resolve) => (given = resolve)) })
    const { length } = fake.sockets
    await settle()
    const early = given
    fake.wake("freeze")
    fake.wake("freeze")
    early("t")
    await fake.pass(20_000)
    assert.equal(fake.sockets.length, length)
    fake.wake("resume")
    await settle()
    assert.notEqual(given, early)
    given("t")
    await settle()
    assert.equal(fake.sockets.length, length + 1)
    fake.socket.greet()
    assert.deepEqual([refused, closed, slow].map(phaseOf), ["refused", "offline", "live"])
})
