// The way to the server: the token, and an actor that shows what this window asks for.
import { connect } from "./trebuchet.js"
import { exact } from "./inspector-json.js"

const kept = "trebuchet-inspector-token"

/** The token of the link, if that is what the address is; the tab keeps it for reloads, and the address shows it no more. */
function linked() {
    if (!location.hash.startsWith("#token=")) return null
    const given = new URLSearchParams(location.hash.slice(1)).get("token")
    history.replaceState(null, "", `${location.pathname}#/`)
    if (given) sessionStorage.setItem(kept, given)
    return given
}

export class Refused extends Error {
    constructor(status, text) {
        super(text)
        this.status = status
    }
}

class Server {
    token = linked() ?? sessionStorage.getItem(kept)
    #path = ""
    /** What ends to observe; none while it does not. */
    #ends = []

    /** Takes a link, or the token alone. */
    use(text) {
        this.token = text.trim().replace(/^.*#token=/, "")
        sessionStorage.setItem(kept, this.token)
    }

    /** Whether the address is a link, whose token is taken instead of the one before: it was opened in the tab of an old one. */
    takeLink() {
        const token = linked()
        if (!token) return false
        this.#leave()
        this.token = token
        return true
    }

    #leave() {
        this.rest()
        this.#client?.close()
        this.#client = undefined
    }

    forget() {
        this.#leave()
        this.token = null
        sessionStorage.removeItem(kept)
    }

    #client
    #page

    /**
     * Observes, from now on.
     *
     * - told: called with `overview` or `view`, and what is shown: `path`, `status`, and `shown`.
     * - troubled: called with what is wrong, or null when it is so no more.
     */
    watch(told, troubled) {
        if (this.#ends.length > 0) return
        if (!this.#client) {
            const client = (this.#client = connect("/", { token: this.token, maximumDelay: 1_000, json: exact }))
            this.#page = client.actor(`pages/${crypto.randomUUID()}`)
            let failures = 0
            client.status.subscribe(() => {
                const { phase, failures: now } = client.status.getSnapshot()
                if (phase === "live") {
                    troubled(null)
                    // Its actor may be another one.
                    this.#ask()
                } else if (now !== failures) this.#reason().then(troubled)
                failures = now
            })
            this.troubled = troubled
        }
        for (const name of ["overview", "view"]) {
            const state = this.#page.state(name === "view" ? "observeView" : "observeOverview")
            this.#ends.push(state.subscribe(() => {
                const shown = state.getSnapshot()
                if (shown?.path) told(name, shown)
            }))
        }
        this.#ask()
    }

    /** Observes no more: nothing is noted for this window. */
    rest() {
        for (const end of this.#ends.splice(0)) end()
    }

    /** What is to be shown beside the overview: a path under `/inspect/`. */
    show(path) {
        this.#path = path
        if (this.#ends.length > 0) this.#ask()
    }

    #ask() {
        if (this.#client.status.getSnapshot().phase !== "live") return
        const path = this.#path
        this.#page.call("look(at:)", [path]).catch((error) => {
            if (path === this.#path && error.code !== "unavailable") this.troubled(new Refused(400, error.message))
        })
    }

    /** Why there is no connection: a browser does not say it of WebSockets. */
    async #reason() {
        let answer
        const { token } = this
        try {
            const headers = { Authorization: `Bearer ${token}` }
            answer = await fetch("/inspect/overview", { headers, cache: "no-store", credentials: "omit" })
        } catch {
            return new Refused(0, "The server does not respond. After a restart it has another token: open the link that it prints.")
        }
        // Another one is tried already.
        if (token !== this.token) return null
        if (answer.status === 401) return new Refused(401, "The token is invalid for this server. Open the link that it printed at its last start.")
        return new Refused(answer.status, "The connection was lost; reconnecting.")
    }

    call(actor, method, values, principal) {
        return this.#page.call("call(_:_:_:_:)", [actor, method, values, principal])
    }

    cut(connection) {
        return this.#page.call("cut(_:)", [connection])
    }
}

export const server = new Server()
