internal import Networking
internal import TrebuchetWire

/// Messages about client actors.
extension ServerConnection: ClientCallingConnection {
    /// Handles a client's identity. From now on the client may export actors.
    func host(_ identity: String) throws(EnvelopeError) {
        guard
            (ClientActorHosts.shortestIdentity...ScannedEnvelope.maximumIdentifierLength).contains(identity.utf8.count)
        else {
            throw EnvelopeError(
                "hello: client must be \(ClientActorHosts.shortestIdentity) to \(ScannedEnvelope.maximumIdentifierLength) characters "
                    + "that cannot be guessed")
        }
        let clients = shard.context.hosting
        let key = clients.key(of: identity, principal: principalRow?.principal)
        if let clientActorHost {
            guard clientActorHost.client.key == key else {
                throw EnvelopeError("hello: this connection already has another client identity")
            }
            return
        }
        let hosting = ClientActorHostConnection(
            self, on: shard.reactor, clients.client(key, scopes, reactor: shard.reactor))
        self.clientActorHost = hosting
        hosting.client.reactor.run { hosting.client.attach(hosting) }
    }

    /// Receives the response to a call of a client actor.
    func receiveResponse(_ message: borrowing Message) throws(EnvelopeError) {
        guard let clientActorHost else { throw EnvelopeError("unexpected response: the client received no call") }
        try clientActorHost.answer(message)
    }

    /// Handles the final close of the client, which will not reconnect.
    func clientDidLeave() {
        clientActorHost?.client.close("was closed")
    }
}
