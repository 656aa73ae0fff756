internal import Trebuchet

extension TrebuchetBackend {
    /// Asks the server once which rooms of a type somebody is in, by the bytes of their names. A server shows them to nobody
    /// unless its rules say so: `"list"` in a file.
    ///
    /// - Parameters:
    ///   - after: the name of the last room of the page before; nil for the first page.
    ///   - limit: how many at most; nil, and more than 1,000, for 1,000.
    ///
    /// Throws `RoomError.forbidden` when they are not for the caller and `RoomError.rateLimited` for too many calls; `TrebuchetError`
    /// and `TransportError` as all calls.
    public func rooms<Presence>(
        _ key: RoomKey<Presence>, after: String? = nil, limit: Int? = nil
    ) async throws -> [RoomSummary] {
        let list = try client.resolve(RoomList.self, id: "\(RoomList.prefix)\(key.type)")
        return try await list.list(after: after, limit: limit)
    }
}
