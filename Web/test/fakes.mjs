// A clock that the test controls, and sockets whose server is the test.
import { connect } from "../dist/trebuchet.js"

/** Lets pending promise reactions run. */
export async function settle() {
    for (let turn = 0; turn < 20; turn++) await null
}

export class FakeEnvironment {
    time = 1_000_000
    timers = new Map()
    lastTimer = 0
    online = true
    visible = true
    listeners = new Set()
    /** Always the longest delay. */
    chance = 1
    sockets = []
    /** Called for each created socket. */
    onSocket = () => {}

    environment = {
        now: () => this.time,
        random: () => this.chance,
        setTimeout: (action, milliseconds) => {
            this.timers.set(++this.lastTimer, { at: this.time + milliseconds, action })
            return this.lastTimer
        },
        clearTimeout: (timer) => this.timers.delete(timer),
        isOnline: () => this.online,
        isVisible: () => this.visible,
        listen: (wake) => {
            this.listeners.add(wake)
            return () => this.listeners.delete(wake)
        },
    }

    wake(type = "visibilitychange", more) {
        for (const listener of this.listeners) listener({ type, ...more })
    }

    /** Advances the clock, timer by timer. */
    async pass(milliseconds) {
        const end = this.time + milliseconds
        await settle()
        for (;;) {
            const due = [...this.timers].filter(([, { at }]) => at <= end).sort((a, b) => a[1].at - b[1].at || a[0] - b[0])[0]
            if (!due) break
            this.timers.delete(due[0])
            this.time = Math.max(this.time, due[1].at)
            due[1].action()
            await settle()
        }
        this.time = end
    }

    connect(options = {}, url = "ws://server") {
        const fake = this
        class WebSocket extends FakeSocket {
            constructor(url, protocols) {
                super(url, protocols)
                fake.sockets.push(this)
                fake.onSocket(this)
            }
        }
        return connect(url, { WebSocket, environment: this.environment, ...options })
    }

    get socket() {
        return this.sockets.at(-1)
    }

    /** A client with a live connection. */
    async live(options, terms) {
        const client = this.connect(options)
        await settle()
        this.socket.greet(terms)
        return client
    }
}

export class FakeSocket {
    readyState = 0
    protocol = ""
    sent = []
    /** The number of inspected sockets. */
    seen = 0

    constructor(url, protocols) {
        this.url = url
        this.protocols = protocols
    }

    send(text) {
        if (this.readyState !== 1) throw new Error("not open")
        this.sent.push(JSON.parse(text))
    }

    close(code) {
        this.wasClosed = true
        this.closeCode = code
        this.readyState = 2
    }

    // The server side

    open(protocol = "trebuchet.v3") {
        this.readyState = 1
        this.protocol = protocol
        this.onopen?.({})
    }

    receive(type, payload) {
        this.receiveText(JSON.stringify({ type, payload }))
    }

    receiveText(data) {
        this.onmessage?.({ data })
    }

    /** Opens the socket and answers hello. */
    greet({ session = "session", ...limits } = {}) {
        this.open()
        this.receive("hello", { protocolVersion: 3, session, limits, pingIntervalMilliseconds: 20000 })
    }

    lose(code = 1006, message) {
        this.readyState = 3
        if (message) this.onerror?.({ message })
        this.onclose?.({ code, reason: "" })
    }

    /** The messages sent since the last call, of one kind or all. */
    take(kind) {
        const taken = this.sent.slice(this.seen).filter(({ type }) => !kind || type === kind)
        this.seen = this.sent.length
        return taken.map((each) => (kind ? each.payload : each))
    }
}

export const codeOf = (promise) => promise.then(() => "done", (error) => error.code)
