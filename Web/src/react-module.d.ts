/** The subset of React's types that is used here, so that the type check needs no installed packages. */
declare module "react" {
    export function useMemo<T>(make: () => T, dependencies: readonly unknown[]): T
    export function useSyncExternalStore<T>(
        subscribe: (listener: () => void) => () => void,
        getSnapshot: () => T,
        getServerSnapshot?: () => T
    ): T
}
