public import SharedState

/// The commands of a collection for those who wait: they return when the server has kept the write, and throw what it is
/// refused with.
@MainActor
extension Shared {
    public func create<Element>(_ element: Element) async throws where Value == SyncedCollection<Element> {
        try await create(element, onAttempt: nil).value
    }

    public func update<Element>(
        _ id: Element.ID, _ change: (inout Element) -> Void
    ) async throws where Value == SyncedCollection<Element> {
        try await update(id, onAttempt: nil, change).value
    }

    public func delete<Element>(_ id: Element.ID) async throws where Value == SyncedCollection<Element> {
        try await delete(id, onAttempt: nil).value
    }

    public func link<Element>(
        _ id: Element.ID, _ field: String, to target: some Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await link(id, field, to: target, onAttempt: nil).value
    }

    public func unlink<Element>(
        _ id: Element.ID, _ field: String, from target: some Encodable
    ) async throws where Value == SyncedCollection<Element> {
        try await unlink(id, field, from: target, onAttempt: nil).value
    }
}
