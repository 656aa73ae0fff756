public import SharedState

extension OperationSlot {
    /// The status and error of writes to a collection.
    static func writing<Element>() -> Self where Value == SyncedCollection<Element> {
        Self(status: \.writeStatus, error: \.writeError, pendingWhile: .anyCall)
    }
}

/// The commands of a collection.
///
/// Each takes effect locally at once, and is sent after the previous ones. `onAttempt` is called before the method returns.
/// When the server has stored or refused the write, one of `onSuccess` and `onError` is called, and last `onSettled`: each once
/// for each call, on the main actor. Without a connection that is later. To wait, use the `value` of the returned call, or the
/// `async` form; cancelling that withdraws the write, unless it has been sent.
@MainActor
extension Shared {
    /// Creates a document. Refused with `alreadyExists` when a document has its id.
    ///
    /// - Parameter expiresIn: the lifetime of the document; nil for the server's limit, which by default is none.
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

    /// Changes a document: the fields that `change` modifies are sent, and no others. When two clients change one field, the
    /// write that reaches the server later wins. The document must be among the items. Refused with `notLoaded` before the
    /// first result, with `notAmongItems` when this query does not show it, and with `notFound` when it does not exist.
    ///
    /// - Parameter condition: a condition that must hold at the server, even when no field changes; otherwise the write is
    ///   refused with `conditionFailed`.
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

    /// Deletes a document, if it exists.
    ///
    /// - Parameter condition: a condition that must hold at the server; otherwise the write is refused with `conditionFailed`.
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

    /// Adds a value, such as the id of another document, to an array field unless it is there. Concurrent links of other
    /// clients are kept.
    ///
    /// Refused with `notAnArray` when the field is not an array.
    ///
    /// - Parameters:
    ///   - field: the name in JSON.
    ///   - collection: a collection, this one or another, that must have a document with this id; otherwise the write is
    ///     refused with `linkTargetMissing`. The link stays when that document is deleted later. Nil for no check.
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

    /// Removes a value from an array field of a document.
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

    /// Clears the error of writes and makes their status idle. Writes in progress continue and call their callbacks, but do not
    /// change the value any more.
    public func reset<Element>() where Value == SyncedCollection<Element> { reset(.writing()) }

    /// Returns the id of the shown document that is equal to this one; its bytes may differ.
    func documentID<Element>(_ id: Element.ID) throws -> DocumentID where Value == SyncedCollection<Element> {
        try CollectionCommands.id(encoding: wrappedValue.items[id: id]?.id ?? id)
    }

    /// - Parameter command: nil when there is nothing to write.
    func write<Element>(
        _ onAttempt: (@MainActor () -> Void)?, _ onSuccess: (@MainActor () -> Void)?,
        _ onError: (@MainActor (any Error) -> Void)?,
        _ onSettled: (@MainActor (Result<Void, any Error>) -> Void)?, _ command: () throws -> DocumentWrite?
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        writeAll(onAttempt, onSuccess, onError, onSettled) { try command().map { [$0] } ?? [] }
    }

    /// - Parameter commands: commands to execute atomically; empty when there is nothing to write.
    func writeAll<Element>(
        _ onAttempt: (@MainActor () -> Void)?, _ onSuccess: (@MainActor () -> Void)?,
        _ onError: (@MainActor (any Error) -> Void)?,
        _ onSettled: (@MainActor (Result<Void, any Error>) -> Void)?, _ commands: () throws -> [DocumentWrite]
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        let receipt: WriteReceipt
        do {
            guard let link = wrappedValue.link else { throw CollectionError.noBackend }
            // Before any suspension, so that writes keep the order of calls and are shown when this method returns.
            let commands = try commands()
            receipt = commands.isEmpty ? WriteReceipt(.success(())) : link.write(commands)
        } catch {
            receipt = WriteReceipt(.failure(error))
        }
        return start(
            .writing(), onAttempt: onAttempt, onSuccess: { onSuccess?() },
            onError: { error in
                // A cancelled call has this outcome, whatever the server responds later.
                if error is CancellationError { receipt.withdraw() }
                onError?(error)
            }, onSettled: onSettled, until: receipt.outcome)
    }
}
