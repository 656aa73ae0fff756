/// Receives external changes of a key's value. Usable from any thread; it does not keep the value alive, and does
/// nothing once the value has been released.
///
/// The key does not save these changes.
public struct SharedSubscriber<Value: Sendable>: Sendable {
    /// An external change of the value or of its loading state.
    enum Message: Sendable {
        case change(@Sendable (inout Value) -> Void)
        case initialValue
        case failure(any Error)
        case loading(Bool)
    }

    /// The file content that the value has seen, if it is stored in a file.
    let observed: ObservedFileContent
    let receive: @Sendable (Message) -> Void
    /// Returns the counters at the beginning of a read. Nil when the value has been released, and while a change is on
    /// its way to the key: then `retry` is called once the key has it.
    let beginRead: @Sendable (_ retry: @escaping @Sendable () -> Void) -> ReadVersion?
    /// Makes a read result the value, or its error. Returns false when the value was changed or saved since `start`:
    /// the result may then be older.
    let acceptRead: @Sendable (VersionedRead<Value>, _ start: ReadVersion) -> Bool

    /// Replaces the value, and ends the loading state and the error.
    public func yield(_ value: Value) { receive(.change { $0 = value }) }

    /// Restores the initial value of the first wrapper, because there is no other. Otherwise like `yield(_:)`.
    public func yieldReturningInitialValue() { receive(.initialValue) }

    /// Changes a part of the value and leaves the rest unchanged. Otherwise like `yield(_:)`.
    public func update(_ change: @escaping @Sendable (inout Value) -> Void) { receive(.change(change)) }

    /// Sets `loadError`; the value stays.
    public func yield(throwing error: any Error) { receive(.failure(error)) }

    /// Marks the value as loading, until the next value or error.
    public func yieldLoading(_ isLoading: Bool = true) { receive(.loading(isLoading)) }
}
