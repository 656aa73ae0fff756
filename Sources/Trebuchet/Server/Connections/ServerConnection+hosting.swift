internal import Networking
internal import TrebuchetWire

/// What a client says of actors of its own.
extension ServerConnection: CallingConnection {
    /// The client has said who it is: from now on it may hand over references to actors of its own.
    func host(_ identity: String) throws(EnvelopeError) {
        guard (HostingClients.shortestIdentity...ScannedEnvelope.longestIdentifier).contains(identity.utf8.count) else {
            throw EnvelopeError(
                "hello: client must be \(HostingClients.shortestIdentity) to \(ScannedEnvelope.longestIdentifier) characters "
                    + "that nobody can guess")
        }
        let clients = shard.parts.hosting
        let key = clients.key(of: identity, principal: seat?.memory.id)
        if let hosting {
            guard hosting.client.key == key else {
                throw EnvelopeError("hello: this connection has said before that it is another client's")
            }
            return
        }
        let hosting = HostingConnection(
            self, on: shard.reactor, clients.client(key, parties, reactor: shard.reactor))
        self.hosting = hosting
        hosting.client.reactor.run { hosting.client.attach(hosting) }
    }

    /// Takes the answer to a call of the server's.
    func takeAnswer(_ message: borrowing Message) throws(EnvelopeError) {
        guard let hosting else { throw EnvelopeError("a client that was not called sends no response") }
        try hosting.answer(message)
    }

    /// The client is closed, and will not come back.
    func clientLeaves() {
        hosting?.client.close("was closed")
    }
}
