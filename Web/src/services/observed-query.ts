import type { State, TrebuchetError } from "./trebuchet.js"

/**
 * Follows a state that the server shows only to connections that have opened it with a call. The client requests the state automatically on
 * each connection. The server refuses a request that arrives before that call; the state must then be followed again. Returns a function
 * that ends this.
 *
 * A value is delivered only while the stream is live: until then the state can have a value from before that call, such as the members of a
 * room that this client has left since.
 */
export function follow<T>(
    state: State<T>,
    came: (value: T) => void,
    failed: (error: TrebuchetError) => void,
    changed?: () => void
): () => void {
    const { status } = state
    const take = (): void => {
        const value = state.getSnapshot()
        if (value !== undefined && status.getSnapshot().phase === "live") came(value)
    }
    const ends = [
        state.subscribe(take),
        status.subscribe(() => {
            const { phase, error } = status.getSnapshot()
            if (phase === "failed") return failed(error!)
            // A new value that equals the old one causes no other notification.
            take()
            changed?.()
        }),
    ]
    take()
    return () => ends.forEach((end) => end())
}
