internal import TrebuchetClient

extension TrebuchetBackend {
    /// Requests the rooms of a type that have members, sorted by the bytes of their names. A server refuses it unless its rules
    /// authorize the caller: `"list"` in a rules file.
    ///
    /// - Parameters:
    ///   - after: the name of the last room of the previous page; nil for the first page.
    ///   - limit: the maximum number of rooms; nil, and more than 1,000, for 1,000.
    ///
    /// Throws `RoomError.forbidden` without authorization and `RoomError.rateLimited` for too many calls; `TrebuchetError` and
    /// `TransportError` as all calls.
    public func rooms<Presence>(
        _ key: RoomKey<Presence>, after: String? = nil, limit: Int? = nil
    ) async throws -> [RoomSummary] {
        let list = try client.resolve(RemoteRoomList.self, id: ServiceNames.roomList(ofType: key.type))
        return try await list.list(after: after, limit: limit)
    }
}
