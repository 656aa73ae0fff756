import { reasonOf } from "./rejections.js"
import { capture, type Client, isSuspension, report, Value } from "./trebuchet.js"
import type { ServicesOptions, SignIn, User } from "./types.js"

interface Grant {
    user: User
    refreshToken: string
    accessToken: string
    accessSeconds: number
}

/** The methods that only forward a call. */
const plain = { sendCode: "sendMagicCode(to:)", sessions: "sessions()", endSession: "endSession(_:)", endOtherSessions: "endOtherSessions()" }
/** The methods whose response signs the user in. */
const signingIn = { signInAsGuest: "signInAsGuest()", verifyCode: "verifyMagicCode(email:code:)", signInWithToken: "signIn(idToken:provider:nonce:)" }

/**
 * The milliseconds that a tab waits for the session's lock, which is longer than a renewal takes. After that time the holder is assumed to
 * be suspended.
 */
const lockPatience = 15_000
/** The result of a renewal whose session has changed in the meantime. */
const again = Symbol()

/** The stored form of a session. */
interface SavedSession {
    token: string
    user: User
}

/** The services that a session uses. */
export interface SessionOwner {
    readonly client: Client
    /** Returns an anonymous client, which `_leave` closes. */
    _anonymous(): Client
    _leave(client: Client): void
    /**
     * Resolves when no write or publication of the user waits, or after 30 seconds of connection. Rejects after 10 seconds without a
     * connection.
     */
    _sent(isLeaving?: boolean): Promise<void>
    _accountChanged(before: string): void
}

/** The page events that a session handles. */
const kinds = ["storage", "pageshow", "resume", "freeze", "pagehide"]

/**
 * Manages the session: signs in and out, and provides the token of each connection. A session is renewed over a separate short connection,
 * so that the others begin signed in.
 */
export class Session extends Value<SignIn> {
    /** The session that this tab has last adopted, even if the app has cleared the storage since. */
    private _last: SavedSession | null
    /** The content of the storage while the session is in memory only, because there is no storage or a write failed. */
    private _old: unknown = this
    private _access: string | undefined
    private _goodUntil = 0
    /** True if the access token was last used for a connection attempt that has not succeeded yet. */
    private _wasShown = false
    private _turn = 0
    private _renewal: Promise<User | undefined> | undefined
    /** Releases the session's lock before the action has ended. */
    private _release: () => void = () => {}

    constructor(private _owner: SessionOwner, private _options: ServicesOptions, private _key: string) {
        super({ phase: "signedOut" })
        for (const [name, target] of Object.entries(plain)) (this as any)[name] = (...args: unknown[]) => this._call(target, args)
        for (const [name, target] of Object.entries(signingIn)) (this as any)[name] = (...args: unknown[]) => this._signIn(target, args)
        const { user } = (this._last = this._saved) ?? {}
        if (user) this.set({ phase: "loading", user })
        // Another tab may have signed in. A suspended page receives no `storage` event.
        for (const kind of kinds) (globalThis as any).addEventListener?.(kind, this._look, capture)
    }

    /** The id of the user who makes writes now; empty for an anonymous user. */
    get _account(): string {
        return this.getSnapshot().user?.id ?? ""
    }

    async signOut(): Promise<void> {
        const saved = this._saved ?? this._last
        if (!saved) return
        // Another tab has signed in as a different user. Its session must not be ended, so this tab adopts it.
        if (saved.user.id !== this._account) return this._follow()
        await this._owner._sent(true)
        // A lost call may have succeeded; the server reports that when the call is repeated.
        const end = (): Promise<void> =>
            this._call("signOut(_:)", [saved.token]).catch((error) => {
                if (error.code === "unknownOutcome") return end()
                if (reasonOf(error) !== "sessionEnded") throw error
            })
        await end()
        await this._exclusively(() => {
            // Another tab may have signed in as a different user in the meantime. The next connection adopts that user.
            if ((this._saved ?? saved).user.id === saved.user.id) this._forget()
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
        // The call has as many arguments as the target has parameters; omitted ones are null.
        args.length = target.split(":").length - 1
        return this._owner.client.actor("auth").call(target, args)
    }

    private async _signIn(target: string, args: unknown[]): Promise<User> {
        await this._owner._sent()
        const grant = await this._call(target, args)
        // This waits for a renewal in progress. It must not start earlier: the call may need a connection, which may need a renewal.
        await this._exclusively(() => {
            this._take(grant)
            // The new connection reopens everything that was opened for the previous user.
            this._owner.client.reconnect()
        })
        return grant.user
    }

    // Tokens

    /** Returns the token for a new connection. */
    _token = async (): Promise<string | undefined> => {
        const turn = ++this._turn
        // This pause ensures that the creator of the client has received it.
        await null
        const { status } = this._owner.client
        // The token was not accepted by a connection, or the connection ended. The server may no longer accept it, and a browser does not
        // report that.
        if (this._wasShown || status.getSnapshot().error?.code === "unauthenticated") this._access = undefined
        if (!this._access || Date.now() > this._goodUntil) await this.refresh()
        // Otherwise another attempt requests the token again.
        if (turn === this._turn) this._wasShown = !!this._access
        return this._access
    }

    _connected(): void {
        this._wasShown = false
    }

    private async _renew(): Promise<User | undefined | typeof again> {
        // The stored session is read each time: another tab may have renewed it, or signed out.
        const saved = this._saved
        if (!saved) {
            if (this._account) this._forget("elsewhere")
            return undefined
        }
        const client = this._owner._anonymous()
        try {
            // A response may be lost: for half a minute the same token returns the same successor.
            const grant = await client.actor("auth").call("refresh(_:)", [saved.token], { timeout: 10_000 })
            // The session may have changed in the meantime, by a sign-in, a sign-out, or another tab while this page was suspended. The
            // newer session stays.
            if (this._saved?.token !== saved.token) return again
            this._take(grant)
        } catch (error: any) {
            if (reasonOf(error) !== "sessionEnded") throw error
            if (this._saved?.token !== saved.token) return again
            this._forget(error.data.sessionEnded._0)
        } finally {
            this._owner._leave(client)
        }
        return this.getSnapshot().user
    }

    /**
     * Runs an action in one tab at a time, if the tabs share a session: a token that is used twice would end it. A suspended tab may hold
     * the lock for any time, so a waiting tab steals it. An action that waits for a response must check, before it stores a session, that
     * the stored session is still the initial one.
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
            // The wait timed out, or another tab stole the lock while this tab's action runs.
            if (!done) await locks.request(this._key, { steal: true }, hold).catch(() => {})
        }
        clearTimeout(timer)
        // Locks may be unavailable, as in a page without storage.
        return done ?? action()
    }

    private _look = (event: any): void => {
        // Otherwise all other tabs would wait for this one.
        if (isSuspension(event)) this._release()
        // An event without a key means that the whole storage was cleared.
        else if (event.type !== "pagehide" && (event.key ?? this._key) === this._key && (this._saved?.user.id ?? "") !== this._account) this._follow()
    }

    /** Reconnects as the stored user; the token in memory may belong to another user. */
    private _follow(): void {
        this._access = undefined
        this._owner.client.reconnect()
    }

    _close(): void {
        for (const kind of kinds) (globalThis as any).removeEventListener?.(kind, this._look, capture)
    }

    // Stored session

    private get _saved(): SavedSession | null {
        const stored = this._stored
        // A session that another tab has stored since is newer.
        if (stored === this._old) return this._last
        try {
            const saved = JSON.parse(stored!)
            return typeof saved.token === "string" && typeof saved.user.id === "string" ? saved : null
        } catch {
            // The storage is empty, or holds something other than a session.
            return null
        }
    }

    private get _stored(): string | null {
        try {
            return this._options.storage!.getItem(this._key)
        } catch {
            // There is no storage, or reading it is not permitted.
            return null
        }
    }

    private _save(saved: SavedSession | null): void {
        const { storage } = this._options
        this._last = saved
        this._old = this._stored
        if (!storage) return
        try {
            if (saved) storage.setItem(this._key, JSON.stringify(saved))
            else storage.removeItem(this._key)
            this._old = this
        } catch (error) {
            // The stored session is no longer valid, so this page continues with its session in memory.
            report(error)
        }
    }

    /** Retries a failed write to the storage. */
    _keepAgain(): void {
        if (this._old !== this) this._save(this._saved)
    }

    private _take({ user, refreshToken, accessToken, accessSeconds }: Grant): void {
        // The session is stored before it is used.
        this._save({ token: refreshToken, user })
        this._access = accessToken
        this._wasShown = false
        this._goodUntil = Date.now() + accessSeconds * 800
        this._show({ phase: "signedIn", user })
    }

    private _forget(ended?: string): void {
        this._access = undefined
        this._save(null)
        this._show({ phase: "signedOut", ...(ended && { ended }) })
    }

    private _show(value: SignIn): void {
        const before = this._account
        this.set(value)
        if (this._account !== before) this._owner._accountChanged(before)
    }
}
