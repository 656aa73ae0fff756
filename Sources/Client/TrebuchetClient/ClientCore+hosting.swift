internal import TrebuchetActors
internal import TrebuchetWire

/// Calls of the server to client actors.
extension ClientCore: InboundCallHost {
    /// Requests the server's limits, and sends the client's identity if it has exported actors.
    func introduceClient(over link: any ClientLink) {
        let identity = exportedActors.identity
        if identity != nil { introducedOver = linkNumber }
        link.send(OutgoingMessage.hello(client: identity))
    }

    /// Sends the client's identity, once it has exported an actor.
    func sendHello(over link: any ClientLink) {
        if exportedActors.identity != nil { introduceClient(over: link) }
    }

    var callsFromServer: Int { options.callsFromServer }

    func answer(over number: Int, _ message: () -> [UInt8]) {
        connection.link(number: number)?.send(message())
    }

    func hostedCallEnded(over number: Int) { connection.callEnded(number: number) }

    /// The maximum size of a response from a client actor, in bytes.
    var answerSize: Int {
        min(outboundCalls.terms.clientAnswerSize, outboundCalls.terms.messageSize, options.serverMessageSize)
    }

    /// Handles a call from the server, or its cancellation.
    func receiveCall(_ bytes: UnsafeRawBufferPointer, over number: Int) {
        let scanned = envelope
        withUnsafePointer(to: scanned) { envelope in
            let message = Message(bytes: bytes, envelope: envelope)
            if message.kind == .cancel {
                hosted.cancel(message, over: number)
            } else {
                hosted.invoke(message, over: number)
            }
        }
    }

    /// Notifies the server that references to this client's actors are invalid, so that it need not wait for a reconnect.
    func connectionWillClose() {
        if introducedOver == linkNumber, exportedActors.identity != nil { link?.send(OutgoingMessage.leave) }
    }
}
