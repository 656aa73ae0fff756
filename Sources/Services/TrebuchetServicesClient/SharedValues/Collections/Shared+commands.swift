public import SharedState

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
