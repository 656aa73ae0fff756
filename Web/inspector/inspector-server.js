// The connection to the server: the token, and the actor that sends the views of this window.
import { connect } from "./trebuchet.js"
import { exact } from "./inspector-json.js"

const storageKey = "trebuchet-inspector-token"

/** Returns the token if the address is a link. Stores it for reloads of the tab, and removes it from the address. */
function linked() {
    if (!location.hash.startsWith("#token=")) return null
    const token = new URLSearchParams(location.hash.slice(1)).get("token")
    history.replaceState(null, "", `${location.pathname}#/`)
    if (token) sessionStorage.setItem(storageKey, token)
    return token
}

export class Refused extends Error {
    constructor(status, text) {
        super(text)
        this.status = status
    }
}

class Server {
    token = linked() ?? sessionStorage.getItem(storageKey)
    #path = ""
    /** Functions that end the subscriptions; empty while nothing is observed. */
    #unsubscribe = []

    /** Sets the token, from a link or directly. */
    use(text) {
        this.token = text.trim().replace(/^.*#token=/, "")
        sessionStorage.setItem(storageKey, this.token)
    }

    /** Replaces the token if the address is a link, which was opened in the tab of an earlier one. Returns whether it did. */
    useLinkedToken() {
        const token = linked()
        if (!token) return false
        this.#disconnect()
        this.token = token
        return true
    }

    #disconnect() {
        this.stop()
        this.#client?.close()
        this.#client = undefined
    }

    forget() {
        this.#disconnect()
        this.token = null
        sessionStorage.removeItem(storageKey)
    }

    #client
    #page

    /**
     * Starts to observe.
     *
     * - onUpdate: called with `overview` or `view`, and its contents: `path`, `status`, and `shown`.
     * - onProblem: called with an error, and with null when it is resolved.
     */
    watch(onUpdate, onProblem) {
        if (this.#unsubscribe.length > 0) return
        if (!this.#client) {
            const client = (this.#client = connect("/", { token: this.token, maximumDelay: 1_000, json: exact }))
            this.#page = client.actor(`pages/${crypto.randomUUID()}`)
            let failures = 0
            client.status.subscribe(() => {
                const { phase, failures: now } = client.status.getSnapshot()
                if (phase === "live") {
                    onProblem(null)
                    // After a reconnect, the server may have another actor for this window.
                    this.#select()
                } else if (now !== failures) this.#findReason().then(onProblem)
                failures = now
            })
            this.onProblem = onProblem
        }
        for (const name of ["overview", "view"]) {
            const state = this.#page.state(name === "view" ? "observeView" : "observeOverview")
            this.#unsubscribe.push(state.subscribe(() => {
                const shown = state.getSnapshot()
                if (shown?.path) onUpdate(name, shown)
            }))
        }
        this.#select()
    }

    /** Ends the subscriptions: nothing is recorded for this window. */
    stop() {
        for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe()
    }

    /** Selects a view beside the overview: a path under `/inspect/`. */
    show(path) {
        this.#path = path
        if (this.#unsubscribe.length > 0) this.#select()
    }

    #select() {
        if (this.#client.status.getSnapshot().phase !== "live") return
        const path = this.#path
        this.#page.call("select(path:)", [path]).catch((error) => {
            if (path === this.#path && error.code !== "unavailable") this.onProblem(new Refused(400, error.message))
        })
    }

    /** Finds the reason of a lost connection with a request: browsers do not expose it for WebSockets. */
    async #findReason() {
        let answer
        const { token } = this
        try {
            const headers = { Authorization: `Bearer ${token}` }
            answer = await fetch("/inspect/overview", { headers, cache: "no-store", credentials: "omit" })
        } catch {
            return new Refused(0, "The server does not respond. After a restart it has another token: open the link that it prints.")
        }
        // Another token is in use by now.
        if (token !== this.token) return null
        if (answer.status === 401) return new Refused(401, "The token is invalid for this server. Open the link that it printed at its last start.")
        return new Refused(answer.status, "The connection was lost; reconnecting.")
    }

    call(actor, method, values, principal) {
        return this.#page.call("call(_:_:_:_:)", [actor, method, values, principal])
    }

    closeConnection(connection) {
        return this.#page.call("closeConnection(_:)", [connection])
    }
}

export const server = new Server()
