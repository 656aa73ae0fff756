/// Where the client of a relayed connection is. Behind a reference: an idle connection of a client's own has room for no more.
final class Upstream: Sendable {
    /// Its connection holds it.
    private weak let link: RelayedLink?
    /// What the connection is called there, and here: calls name it.
    let carried: CarriedName
    /// What its streams' names begin with.
    let streams: String

    init(_ link: RelayedLink, carried: CarriedName, streams: String) {
        self.link = link
        self.carried = carried
        self.streams = streams
    }

    /// On the connection's reactor.
    func send(_ kind: RelayFrame.Kind, _ payload: [UInt8] = []) { link?.leave(kind, payload) }
}
