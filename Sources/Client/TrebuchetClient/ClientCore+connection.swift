internal import Bytes
internal import Distributed
internal import Platform
internal import Transports
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// The effect of connection changes on calls and streams.
extension ClientCore: ClientConnectionDelegate {
    func connection(uses link: any ClientLink, number: Int) {
        self.link = link
        linkNumber = number
        isServerDraining = false
        outboundCalls.removeAll()
        // The new connection may lead to another server.
        advertisedMessageSize = .max
        peerNumber.store(HandshakeField.server(ofSession: link.callSession), ordering: .relaxed)
        introduceClient(over: link)
        // Streams first, so that a client that calls and observes receives the changes made by its calls.
        for (number, mode) in streams.restartAll() { startStream(number, mode) }
        for call in pending.values.filter({ $0.connection == 0 }).sorted(by: { $0.number < $1.number }) {
            outboundCalls.enqueue(call)
        }
        sendNext()
    }

    func connectionLost(number: Int, _ error: TransportError) {
        hosted.lost(number)
        if error.cause is MessageTooLarge { endRefused(number) }
        if number == linkNumber {
            link = nil
            isServerDraining = false
            outboundCalls.removeAll()
        }
        let lost = pending.values.filter { $0.connection == number }
        for call in lost.sorted(by: { $0.number < $1.number }) {
            if call.isRepeatable, connection.isExpected {
                call.connection = 0
                // A connection that was kept for its calls has broken while another one exists.
                if link != nil { outboundCalls.enqueue(call) }
            } else {
                endUnknown(call, error)
            }
        }
        sendNext()
    }

    /// Handles a connection that the server has closed because of a message that is too large. The largest unanswered call is
    /// assumed to be the cause, or others were too large as well. It is not sent again over any connection.
    private func endRefused(_ connection: Int) {
        let sent = pending.values.filter { $0.connection == connection }
        guard let call = sent.max(by: { $0.sentByteCount < $1.sentByteCount }) else { return }
        pending[call.number] = nil
        let error = MessageSizeErrors.refused(call.name, call.sentByteCount, limit: options.serverMessageSize)
        call.finish(.failure(error))
    }

    private func endUnknown(_ call: PendingCall, _ error: TransportError) {
        pending[call.number] = nil
        let text = "\(call.name) was sent but has no response; it may have been executed: \(error.message)"
        call.finish(.failure(TrebuchetError(.unknownOutcome, text)))
    }

    func callsUnderWay(number: Int) -> Int {
        pending.values.count { $0.connection == number } + hosted.count(over: number)
    }

    var needsConnection: Bool { !pending.isEmpty || streams.count > 0 }

    func connectionAbandoned(_ error: TransportError) {
        let failure = TrebuchetError(.unavailable, error.message)
        for call in pending.values where call.connection == 0 {
            guard call.isUnsent else {
                endUnknown(call, error)
                continue
            }
            pending[call.number] = nil
            call.finish(.failure(failure))
        }
        streams.removeAll(failure)
    }
}
