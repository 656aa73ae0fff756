/// Where the client of a relayed connection is. Behind a reference: an idle connection of a client's own has room for no more.
final class Upstream: Sendable {
    private let line: RelayLine
    /// What the connection is called there, and here: calls name it.
    let carried: CarriedName
    /// What its streams' names begin with.
    let streams: String

    init(line: RelayLine, carried: CarriedName, streams: String) {
        self.line = line
        self.carried = carried
        self.streams = streams
    }

    func send(_ kind: RelayFrame.Kind, _ payload: [UInt8] = []) { line.send(kind, payload) }
}
