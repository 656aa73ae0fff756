/// Takes what a key hears from outside. Usable from any thread; it does not keep the value alive, and does nothing once
/// the value is gone.
///
/// Nothing that comes this way is saved by the key.
public struct SharedSubscriber<Value: Sendable>: Sendable {
    enum Message: Sendable {
        case change(@Sendable (inout Value) -> Void)
        case initialValue
        case failure(any Error)
        case loading(Bool)
    }

    /// What the value has seen of its file, where it is kept in one.
    let seen: SeenContent
    let receive: @Sendable (Message) -> Void
    /// What a reading has to know as it begins. Nil when the value is gone, and while a change is on its way to the key: then what
    /// is given here is called once the key has it.
    let beginReading: @Sendable (_ again: @escaping @Sendable () -> Void) -> ReadingMoment?
    /// Makes what was read the value, or its error; false when the value was changed or saved since the moment: then what was
    /// read may be older.
    let take: @Sendable (Reading<Value>, _ begun: ReadingMoment) -> Bool

    /// Replaces the value, and ends the loading and the error that were there before.
    public func yield(_ value: Value) { receive(.change { $0 = value }) }

    /// There is nothing any more: the value is the one that the first wrapper gave. Otherwise like `yield(_:)`.
    public func yieldReturningInitialValue() { receive(.initialValue) }

    /// Changes a part of the value and leaves the rest as it is; otherwise like `yield(_:)`.
    public func update(_ change: @escaping @Sendable (inout Value) -> Void) { receive(.change(change)) }

    /// Shows an error as `loadError`; the value stays.
    public func yield(throwing error: any Error) { receive(.failure(error)) }

    /// Shows the value as loading, until the next value or error.
    public func yieldLoading(_ isLoading: Bool = true) { receive(.loading(isLoading)) }
}
