public import SharedState

extension OperationSlot {
    /// Where a collection shows how writing goes.
    static func writing<Element>() -> Self where Value == SyncedCollection<Element> {
        Self(status: \.writeStatus, error: \.writeError, pendingWhile: .anyCall)
    }
}

/// The commands of a collection.
///
/// Each shows at once, and is sent after those before it. `onAttempt` is called before the method returns; then, when the
/// server has kept the write or refused it, one of `onSuccess` and `onError`, and last `onSettled`: each once for each call,
/// all on the main actor. Without a connection that is later. To wait for it use the `value` of the call that is returned, or
/// the `async` form; cancelling that takes the write back, unless it has been sent.
@MainActor
extension Shared {
    /// Adds a document. Refused with `alreadyExists` when there is one with its id.
    ///
    /// - Parameter expiresIn: how long there is one; nil for what the server says, which is for ever unless its limits say less.
    @discardableResult
    public func create<Element>(
        _ element: Element, expiresIn: Duration? = nil,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            let fields = try CollectionCommands.fields(of: element)
            return DocumentWrite(
                .create(id: try CollectionCommands.id(fields["id"]), fields: fields, expiresIn: expiresIn))
        }
    }

    /// Changes a document: the fields that differ after `change` are sent, and no others. Of two clients that change one
    /// field, the one whose write reaches the server later wins. It must be among the items: refused with `notLoaded` before the first
    /// result has come, with `notAmongItems` when this query does not show it, and with `notFound` when there is none.
    ///
    /// - Parameter condition: what must hold at the server for it to be done, also when nothing differs here; else it is refused with
    ///   `conditionFailed`.
    @discardableResult
    public func update<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil,
        _ change: (inout Element) -> Void
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        let before = wrappedValue.items[id: id]
        var after = before
        if var changed = before {
            change(&changed)
            after = changed
        }
        return write(onAttempt, onSuccess, onError, onSettled) {
            let name = try documentID(id)
            guard let before, let after else { throw wrappedValue.missing(name) }
            let fields = try CollectionCommands.changes(from: before, to: after)
            return CollectionCommands.update(name, fields, if: condition)
        }
    }

    /// Removes a document, if there is one.
    ///
    /// - Parameter condition: what must hold at the server for it to be done; else it is refused with `conditionFailed`.
    @discardableResult
    public func delete<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            DocumentWrite(.delete(id: try documentID(id)), if: condition)
        }
    }

    /// Adds something, as the id of another document, to the array that a field of a document is, unless it is there. What
    /// others link at the same time stays.
    ///
    /// Refused with `notAnArray` when the field is something else.
    ///
    /// - Parameters:
    ///   - field: the name in JSON.
    ///   - collection: the collection that must have a document with this id then, this one or another: else it is refused with
    ///     `linkTargetMissing`. The link stays when that document is deleted later. Nil when nobody is to look.
    @discardableResult
    public func link<Element>(
        _ id: Element.ID, _ field: String, to target: some Encodable, in collection: String? = nil,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            let target = try JSONValue(encoding: target)
            return DocumentWrite(.link(id: try documentID(id), field: field, target: target, in: collection))
        }
    }

    /// Takes something out of the array that a field of a document is.
    @discardableResult
    public func unlink<Element>(
        _ id: Element.ID, _ field: String, from target: some Encodable,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            let target = try JSONValue(encoding: target)
            return DocumentWrite(.unlink(id: try documentID(id), field: field, target: target))
        }
    }

    /// Clears the error of writes and makes their status idle. Writes under way go on and have their callbacks, but write
    /// nothing more into the value.
    public func reset<Element>() where Value == SyncedCollection<Element> { reset(.writing()) }

    /// The id of the document that is shown under this one, which need not have the same bytes.
    func documentID<Element>(_ id: Element.ID) throws -> DocumentID where Value == SyncedCollection<Element> {
        try CollectionCommands.id(encoding: wrappedValue.items[id: id]?.id ?? id)
    }

    /// - Parameter command: nil when there is nothing to be done.
    func write<Element>(
        _ onAttempt: (@MainActor () -> Void)?, _ onSuccess: (@MainActor () -> Void)?,
        _ onError: (@MainActor (any Error) -> Void)?,
        _ onSettled: (@MainActor (Result<Void, any Error>) -> Void)?, _ command: () throws -> DocumentWrite?
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        writeAll(onAttempt, onSuccess, onError, onSettled) { try command().map { [$0] } ?? [] }
    }

    /// - Parameter commands: done at once or not at all; none when there is nothing to be done.
    func writeAll<Element>(
        _ onAttempt: (@MainActor () -> Void)?, _ onSuccess: (@MainActor () -> Void)?,
        _ onError: (@MainActor (any Error) -> Void)?,
        _ onSettled: (@MainActor (Result<Void, any Error>) -> Void)?, _ commands: () throws -> [DocumentWrite]
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        let receipt: WriteReceipt
        do {
            guard let link = wrappedValue.link else { throw CollectionError.noBackend }
            // Before anything waits: so writes keep the order of the calls, and are shown when this returns.
            let commands = try commands()
            receipt = commands.isEmpty ? WriteReceipt(.success(())) : link.write(commands)
        } catch {
            receipt = WriteReceipt(.failure(error))
        }
        return start(
            .writing(), onAttempt: onAttempt, onSuccess: { onSuccess?() },
            onError: { error in
                // A call that is cancelled has this outcome, whatever the server says later.
                if error is CancellationError { receipt.withdraw() }
                onError?(error)
            }, onSettled: onSettled, until: receipt.outcome)
    }
}
