// The way to the server: the token, and what is asked.

const kept = "trebuchet-inspector-token"

/** The token of the link; the tab keeps it for reloads, and the address shows it no more. */
function token() {
    const parts = new URLSearchParams(location.hash.slice(1))
    const given = location.hash.startsWith("#token=") ? parts.get("token") : null
    if (given) {
        sessionStorage.setItem(kept, given)
        history.replaceState(null, "", `${location.pathname}#/`)
    }
    return sessionStorage.getItem(kept)
}

export class Refused extends Error {
    constructor(status, text) {
        super(text)
        this.status = status
    }
}

export const server = {
    token: token(),

    /** Takes a link, or the token alone. */
    use(text) {
        this.token = text.trim().replace(/^.*#token=/, "")
        sessionStorage.setItem(kept, this.token)
    },

    forget() {
        this.token = null
        sessionStorage.removeItem(kept)
    },

    /** What is shown at a path under `/inspect/`. */
    async look(path, { method = "GET", signal } = {}) {
        let answer
        try {
            const headers = { Authorization: `Bearer ${this.token}` }
            answer = await fetch(`/inspect/${path}`, { method, headers, signal, cache: "no-store", credentials: "omit" })
        } catch (error) {
            if (error.name === "AbortError") throw error
            throw new Refused(0, "The server does not answer. It may have ended; the next one has another token.")
        }
        if (answer.status === 401) throw new Refused(401, "The token is not the one of this server.")
        const json = await answer.json().catch(() => null)
        if (!answer.ok) throw new Refused(answer.status, json?.error ?? `The server answers with ${answer.status}.`)
        return json
    },
}
