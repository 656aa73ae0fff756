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

/// Collection commands without callbacks, for synchronous code such as the action of a button.
///
/// In asynchronous code the awaited forms have the same names. Top-level code prefers synchronous forms even after `try await`:
/// without these, it would call the form with callbacks, which neither waits nor throws.
@MainActor
extension Shared {
    /// Starts to create a document; see ``create(_:expiresIn:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func create<Element>(
        _ element: Element, expiresIn: Duration? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        create(element, expiresIn: expiresIn, onAttempt: nil)
    }

    /// Starts to change a document; see ``update(_:if:onAttempt:onSuccess:onError:onSettled:_:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func update<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil, _ change: (inout Element) -> Void
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        update(id, if: condition, onAttempt: nil, change)
    }

    /// Starts to delete a document; see ``delete(_:if:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func delete<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        delete(id, if: condition, onAttempt: nil)
    }

    /// Starts to add a value to an array field; see ``link(_:_:to:in:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func link<Element>(
        _ id: Element.ID, _ field: String, to target: some Encodable, in collection: String? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        link(id, field, to: target, in: collection, onAttempt: nil)
    }

    /// Starts to remove a value from an array field; see ``unlink(_:_:from:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func unlink<Element>(
        _ id: Element.ID, _ field: String, from target: some Encodable
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        unlink(id, field, from: target, onAttempt: nil)
    }

    /// Starts to add to a number; see ``increment(_:_:by:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func increment<Element>(
        _ id: Element.ID, _ field: String, by amount: some Numeric & Encodable
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        increment(id, field, by: amount, onAttempt: nil)
    }

    /// Starts to change parts of fields; see ``merge(_:_:if:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func merge<Element>(
        _ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        merge(id, fields, if: condition, onAttempt: nil)
    }

    /// Starts to set the lifetime of a document; see ``expire(_:in:onAttempt:onSuccess:onError:onSettled:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func expire<Element>(
        _ id: Element.ID, in duration: Duration?
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        expire(id, in: duration, onAttempt: nil)
    }

    /// Starts a transaction; see ``transaction(onAttempt:onSuccess:onError:onSettled:_:)``.
    @available(
        *, noasync,
        message:
            "top-level code cannot choose the awaited form: call it in an async function or an '@main' type, or pass 'onAttempt: nil' and await 'value'"
    )
    @discardableResult
    public func transaction<Element>(
        _ body: (inout CollectionTransaction<Element>) throws -> Void
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        transaction(onAttempt: nil, body)
    }
}

/// The awaited forms of the collection commands: each returns when the server has stored the write, and throws when it refuses
/// the write.
@MainActor
extension Shared {
    /// Creates a document, as the form with callbacks does. Returns when the server has stored it. Throws
    /// `CollectionError.alreadyExists` when a document has its id.
    public func create<Element>(
        _ element: Element, expiresIn: Duration? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await create(element, expiresIn: expiresIn, onAttempt: nil).value
    }

    /// Changes a document that is among the items, as the form with callbacks does. Returns when the server has stored the
    /// change. Throws `conditionFailed` when `condition` does not hold at the server.
    public func update<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil, _ change: (inout Element) -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await update(id, if: condition, onAttempt: nil, change).value
    }

    /// Deletes a document, if it exists. Returns when the server has deleted it. Throws `conditionFailed` when `condition` does
    /// not hold at the server.
    public func delete<Element>(
        _ id: Element.ID, if condition: WriteCondition? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await delete(id, if: condition, onAttempt: nil).value
    }

    /// Adds to a number at the server, as the form with callbacks does. Returns when the server has stored it. Throws
    /// `notANumber` for a field that is not a number.
    public func increment<Element>(
        _ id: Element.ID, _ field: String, by amount: some Numeric & Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await increment(id, field, by: amount, onAttempt: nil).value
    }

    /// Changes parts of fields, as the form with callbacks does. Returns when the server has stored them. Throws
    /// `conditionFailed` when `condition` does not hold at the server.
    public func merge<Element>(
        _ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await merge(id, fields, if: condition, onAttempt: nil).value
    }

    /// Sets the remaining lifetime of a document. Returns when the server has stored it. Nil removes the limit.
    public func expire<Element>(
        _ id: Element.ID, in duration: Duration?
    ) async throws where Value == SyncedCollection<Element> {
        try await expire(id, in: duration, onAttempt: nil).value
    }

    /// Executes several commands atomically, as the form with callbacks does. Returns when the server has executed them. Throws
    /// ``TransactionError`` with the command that failed.
    public func transaction<Element>(
        _ body: (inout CollectionTransaction<Element>) throws -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await transaction(onAttempt: nil, body).value
    }

    /// Adds a value to an array field, as the form with callbacks does. Returns when the server has stored it. Throws
    /// `linkTargetMissing` when `collection` has no such document.
    public func link<Element>(
        _ id: Element.ID, _ field: String, to target: some Encodable, in collection: String? = nil
    ) async throws where Value == SyncedCollection<Element> {
        try await link(id, field, to: target, in: collection, onAttempt: nil).value
    }

    /// Removes a value from an array field. Returns when the server has stored it.
    public func unlink<Element>(
        _ id: Element.ID, _ field: String, from target: some Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await unlink(id, field, from: target, onAttempt: nil).value
    }
}

/// Commands that change parts of documents, and transactions. They behave as `Shared+collection.swift` says.
@MainActor
extension Shared {
    /// Adds to a number; concurrent additions of other clients count too. Exact for integers; a missing field is 0. Refused
    /// with `notANumber`, and with `numberOverflow` for a result that exceeds `Int64`.
    ///
    /// - Parameter field: the name in JSON.
    @discardableResult
    public func increment<Element>(
        _ id: Element.ID, _ field: String, by amount: some Numeric & Encodable,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            let amount = try JSONValue(encoding: amount)
            return DocumentWrite(.increment(id: try documentID(id), field: field, by: amount))
        }
    }

    /// Changes parts of fields with a merge patch (RFC 7396), and keeps concurrent changes of other parts. Null removes a
    /// member.
    ///
    ///     $people.merge("1", ["address": .object(["city": .string("Bonn")])])
    ///
    /// - Parameter condition: a condition that must hold at the server; otherwise the write is refused with `conditionFailed`.
    @discardableResult
    public func merge<Element>(
        _ id: Element.ID, _ fields: JSONObject, if condition: WriteCondition? = nil,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            DocumentWrite(.merge(id: try documentID(id), fields: fields), if: condition)
        }
    }

    /// Sets the remaining lifetime of a document; nil removes the limit.
    @discardableResult
    public func expire<Element>(
        _ id: Element.ID, in duration: Duration?,
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        write(onAttempt, onSuccess, onError, onSettled) {
            DocumentWrite(.expire(id: try documentID(id), expiresIn: duration))
        }
    }

    /// Executes several commands atomically: when one of them is refused, none is executed, and the call fails with a
    /// ``TransactionError``. Other clients never see a part of it. At most 100 commands, each of which counts as a write.
    ///
    ///     $accounts.transaction { accounts in
    ///         try accounts.increment("ada", "balance", by: -5)
    ///         try accounts.increment("bob", "balance", by: 5)
    ///     }
    @discardableResult
    public func transaction<Element>(
        onAttempt: (@MainActor () -> Void)? = nil, onSuccess: (@MainActor () -> Void)? = nil,
        onError: (@MainActor (any Error) -> Void)? = nil,
        onSettled: (@MainActor (Result<Void, any Error>) -> Void)? = nil,
        _ body: (inout CollectionTransaction<Element>) throws -> Void
    ) -> OperationCall<Void> where Value == SyncedCollection<Element> {
        writeAll(onAttempt, onSuccess, onError, onSettled) {
            var transaction = CollectionTransaction(wrappedValue)
            try body(&transaction)
            return transaction.writes
        }
    }
}
