import type { State, TrebuchetError } from "./trebuchet.js"

/**
 * Follows a state that the server shows to connections alone that have asked for it in another way first. The client asks for it by
 * itself on each connection, which is refused when that comes too early: then it is to be followed anew. Gives what ends it.
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
