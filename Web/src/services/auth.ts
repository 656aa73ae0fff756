import { reasonOf } from "./refusals.js"
import { capture, type Client, isSuspension, report, Value } from "./trebuchet.js"
import type { ServicesOptions, SignIn, User } from "./types.js"

interface Grant {
    user: User
    refreshToken: string
    accessToken: string
    accessSeconds: number
}

/** Those that are a call and no more. */
const plain = { sendCode: "sendMagicCode(to:)", sessions: "sessions()", endSession: "endSession(_:)", endOtherSessions: "endOtherSessions()" }
/** Those whose answer signs in. */
const signingIn = { signInAsGuest: "signInAsGuest()", verifyCode: "verifyMagicCode(email:code:)", signInWithToken: "signIn(idToken:provider:nonce:)" }

/** Milliseconds that a tab waits for the session's lock, longer than a renewal takes. Its holder is suspended then. */
const lockPatience = 15_000
/** The result of a renewal of a session that has changed meanwhile. */
const again = Symbol()

/** What is kept of a session. */
interface Kept {
    token: string
    user: User
}

/** Who a session asks for help. */
export interface SessionOwner {
    readonly client: Client
    /** A client that is nobody, until `_leave`. */
    _anonymous(): Client
    _leave(client: Client): void
    /** Resolves when nothing waits of who is signed in, or after 30 seconds of connection. Rejects without one for 10 seconds. */
    _sent(isLeaving?: boolean): Promise<void>
    _accountChanged(before: string): void
}

/** Events of the page that a session handles. */
const kinds = ["storage", "pageshow", "resume", "freeze", "pagehide"]

/** Keeps the session: signs in and out, and gives each connection its token. A session is renewed over a short connection of its own, so that the others begin signed in. */
export class Session extends Value<SignIn> {
    /** The session that this tab has taken last, also where the app has cleared the storage since. */
    private _last: Kept | null
    /** What the storage has still where that is kept in memory alone: there is none, or it took nothing. */
    private _old: unknown = this
    private _access: string | undefined
    private _goodUntil = 0
    /** The access token that was shown to connect last, and whether that has come to a connection. */
    private _wasShown = false
    private _turn = 0
    private _renewal: Promise<User | undefined> | undefined
    /** Releases the session's lock before the action has ended. */
    private _release: () => void = () => {}

    constructor(private _owner: SessionOwner, private _options: ServicesOptions, private _key: string) {
        super({ phase: "signedOut" })
        for (const [name, target] of Object.entries(plain)) (this as any)[name] = (...args: unknown[]) => this._call(target, args)
        for (const [name, target] of Object.entries(signingIn)) (this as any)[name] = (...args: unknown[]) => this._signIn(target, args)
        const { user } = (this._last = this._kept) ?? {}
        if (user) this.set({ phase: "loading", user })
        // Another tab may have signed in. A suspended page receives no `storage` event.
        for (const kind of kinds) (globalThis as any).addEventListener?.(kind, this._look, capture)
    }

    /** Whose writes are made now: the user's id, or nothing. */
    get _account(): string {
        return this.getSnapshot().user?.id ?? ""
    }

    async signOut(): Promise<void> {
        const kept = this._kept ?? this._last
        if (!kept) return
        // Another tab has signed in as somebody else, whose session is not meant: this one follows.
        if (kept.user.id !== this._account) return this._follow()
        await this._owner._sent(true)
        // A call that was lost may have been done: asked again, the server says so.
        const end = (): Promise<void> =>
            this._call("signOut(_:)", [kept.token]).catch((error) => {
                if (error.code === "unknownOutcome") return end()
                if (reasonOf(error) !== "sessionEnded") throw error
            })
        await end()
        await this._exclusively(() => {
            // Somebody else may have signed in meanwhile in another tab, who is taken with the next connection.
            if ((this._kept ?? kept).user.id === kept.user.id) this._forget()
            this._follow()
        })
    }

    refresh(): Promise<User | undefined> {
        const renew = async (): Promise<User | undefined> => {
            for (;;) {
                const user = await this._exclusively(() => this._renew())
                if (user !== again) return user
            }
        }
        return (this._renewal ??= renew().finally(() => (this._renewal = undefined)))
    }

    private _call(target: string, args: unknown[]): Promise<any> {
        // As many as it has: what is left out is null.
        args.length = target.split(":").length - 1
        return this._owner.client.actor("auth").call(target, args)
    }

    private async _signIn(target: string, args: unknown[]): Promise<User> {
        await this._owner._sent()
        const grant = await this._call(target, args)
        // Behind a renewal that is under way. Not earlier: the call may need a connection, which may need a renewal.
        await this._exclusively(() => {
            this._take(grant)
            // What was opened as somebody else is opened anew over another connection.
            this._owner.client.reconnect()
        })
        return grant.user
    }

    // Tokens

    /** The token for a new connection. */
    _token = async (): Promise<string | undefined> => {
        const turn = ++this._turn
        // Whoever makes the client has it after this.
        await null
        const { status } = this._owner.client
        // It came to no connection, or to the end of one: the server may not know it any more, which a browser does not tell.
        if (this._wasShown || status.getSnapshot().error?.code === "unauthenticated") this._access = undefined
        if (!this._access || Date.now() > this._goodUntil) await this.refresh()
        // Else it is asked for anew, for another attempt.
        if (turn === this._turn) this._wasShown = !!this._access
        return this._access
    }

    _connected(): void {
        this._wasShown = false
    }

    private async _renew(): Promise<User | undefined | typeof again> {
        // Read anew each time: another tab may have renewed it, or signed out.
        const kept = this._kept
        if (!kept) {
            if (this._account) this._forget("elsewhere")
            return undefined
        }
        const client = this._owner._anonymous()
        try {
            // An answer that was lost: for half a minute the same token gives the same next one.
            const grant = await client.actor("auth").call("refresh(_:)", [kept.token], { timeout: 10_000 })
            // The session may have changed meanwhile: by a sign-in or sign-out, or by another tab while this page was suspended. The newer one stays.
            if (this._kept?.token !== kept.token) return again
            this._take(grant)
        } catch (error: any) {
            if (reasonOf(error) !== "sessionEnded") throw error
            if (this._kept?.token !== kept.token) return again
            this._forget(error.data.sessionEnded._0)
        } finally {
            this._owner._leave(client)
        }
        return this.getSnapshot().user
    }

    /**
     * Runs an action in one tab at a time, where the tabs share a session: a token that is used twice would end it. A suspended tab may hold
     * the lock for any time, so a waiting tab steals it. An action that waits for an answer must check, before it stores a session, that the
     * stored one is still the one that it began with.
     */
    private async _exclusively<T>(action: () => T | Promise<T>): Promise<T> {
        const locks = this._options.storage && (globalThis as any).navigator?.locks
        if (!locks) return action()
        let done: Promise<T> | undefined
        const hold = (): Promise<unknown> => {
            done = (async () => action())()
            return Promise.race([done, new Promise<void>((resolve) => (this._release = resolve))]).catch(() => {})
        }
        const patience = new AbortController()
        const timer = setTimeout(() => patience.abort(), lockPatience * (1 + Math.random() / 4))
        try {
            await locks.request(this._key, { signal: patience.signal }, hold)
        } catch {
            // The wait was too long; or the lock was stolen from this tab, whose action runs already.
            if (!done) await locks.request(this._key, { steal: true }, hold).catch(() => {})
        }
        clearTimeout(timer)
        // Locks may be refused, as in a page without storage.
        return done ?? action()
    }

    private _look = (event: any): void => {
        // Else all other tabs would wait for this one.
        if (isSuspension(event)) this._release()
        // No key: all was cleared.
        else if (event.type !== "pagehide" && (event.key ?? this._key) === this._key && (this._kept?.user.id ?? "") !== this._account) this._follow()
    }

    /** The next connection is that of who is kept; the token here may be somebody else's. */
    private _follow(): void {
        this._access = undefined
        this._owner.client.reconnect()
    }

    _close(): void {
        for (const kind of kinds) (globalThis as any).removeEventListener?.(kind, this._look, capture)
    }

    // What is known

    private get _kept(): Kept | null {
        const stored = this._stored
        // What another tab has stored since is newer.
        if (stored === this._old) return this._last
        try {
            const kept = JSON.parse(stored!)
            return typeof kept.token === "string" && typeof kept.user.id === "string" ? kept : null
        } catch {
            // Nothing is kept, or something else than a session.
            return null
        }
    }

    private get _stored(): string | null {
        try {
            return this._options.storage!.getItem(this._key)
        } catch {
            // There is none, or it may not be read.
            return null
        }
    }

    private _keep(kept: Kept | null): void {
        const { storage } = this._options
        this._last = kept
        this._old = this._stored
        if (!storage) return
        try {
            if (kept) storage.setItem(this._key, JSON.stringify(kept))
            else storage.removeItem(this._key)
            this._old = this
        } catch (error) {
            // The one that it has is not good any more, so this page goes on with its own.
            report(error)
        }
    }

    /** Stores what could not be stored, if it can be now. */
    _keepAgain(): void {
        if (this._old !== this) this._keep(this._kept)
    }

    private _take({ user, refreshToken, accessToken, accessSeconds }: Grant): void {
        // Kept before it is used.
        this._keep({ token: refreshToken, user })
        this._access = accessToken
        this._wasShown = false
        this._goodUntil = Date.now() + accessSeconds * 800
        this._show({ phase: "signedIn", user })
    }

    private _forget(ended?: string): void {
        this._access = undefined
        this._keep(null)
        this._show({ phase: "signedOut", ...(ended && { ended }) })
    }

    private _show(value: SignIn): void {
        const before = this._account
        this.set(value)
        if (this._account !== before) this._owner._accountChanged(before)
    }
}
