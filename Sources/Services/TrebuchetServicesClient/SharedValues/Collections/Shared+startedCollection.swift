public import SharedState

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
