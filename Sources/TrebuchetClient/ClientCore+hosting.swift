internal import TrebuchetActors
internal import TrebuchetWire

/// Actors of the client that its server calls.
extension ClientCore: HostingCore {
    /// Asks the server what it takes, and says who the client is if it has handed over references.
    func greet(over link: any ClientLink) {
        let identity = handed.identity
        if identity != nil { introducedOver = linkNumber }
        link.send(OutgoingMessage.hello(client: identity))
    }

    /// Says who the client is, once it has handed over a reference.
    func introduce(over link: any ClientLink) {
        if handed.identity != nil { greet(over: link) }
    }

    var callsFromServer: Int { options.callsFromServer }

    func answer(over number: Int, _ message: () -> [UInt8]) {
        connection.link(number: number)?.send(message())
    }

    func hostedCallEnded(over number: Int) { connection.callEnded(number: number) }

    /// Bytes that an answer of an actor of this client may have.
    var answerSize: Int { min(line.terms.clientAnswerSize, line.terms.messageSize, options.serverMessageSize) }

    /// Handles a call of the server's, or the end of one.
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

    /// References to actors of this client mean nothing any more, and the server need not wait to find that out.
    func connectionWillClose() {
        if introducedOver == linkNumber, handed.identity != nil { link?.send(OutgoingMessage.leave) }
    }
}
