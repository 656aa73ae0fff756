import type { State, TrebuchetError } from "./trebuchet.js"

/**
 * Follows a state that the server shows only to connections that have opened it with a call. The client requests the state automatically on
 * each connection. The server refuses a request that arrives before that call; the state must then be followed again. Returns a function
 * that ends this.
 */
export function follow<T>(
    state: State<T>,
    came: (value: T) => void,
    failed: (error: TrebuchetError) => void,
    changed: () => void = () => {}
): () => void {
    const take = (): void => {
        const value = state.getSnapshot()
        if (value !== undefined) came(value)
    }
    const ends = [
        state.subscribe(take),
        state.status.subscribe(() => {
            const { phase, error } = state.status.getSnapshot()
            if (phase === "failed") failed(error!)
            else changed()
        }),
    ]
    take()
    return () => ends.forEach((end) => end())
}
