internal import Bytes
internal import Distributed
internal import Platform
internal import Transports
internal import Relays
internal import Synchronization
internal import TrebuchetWire

/// What a connection that comes, breaks or is given up does to calls and streams.
extension ClientCore: ClientConnectionDelegate {
    func connection(uses link: any ClientLink, number: Int) {
        self.link = link
        linkNumber = number
        isSentAway = false
        line.removeAll()
        // It may be another server.
        toldMessageSize = .max
        peerNumber.store(HandshakeField.server(ofSession: link.session), ordering: .relaxed)
        greet(over: link)
        // Streams first: who calls and observes sees what the call has changed.
        for (number, beginning) in streams.beginAnew() { begin(number, beginning) }
        for call in pending.values.filter({ $0.connection == 0 }).sorted(by: { $0.number < $1.number }) {
            line.add(call)
        }
        sendNext()
    }

    func connectionLost(number: Int, _ error: TransportError) {
        hosted.lost(number)
        if error.cause is MessageRefusal { endRefused(number) }
        if number == linkNumber {
            link = nil
            isSentAway = false
            line.removeAll()
        }
        let lost = pending.values.filter { $0.connection == number }
        for call in lost.sorted(by: { $0.number < $1.number }) {
            if call.isRepeatable, connection.isExpected {
                call.connection = 0
                // A connection that was left to its calls has broken while there is another one.
                if link != nil { line.add(call) }
            } else {
                endUnknown(call, error)
            }
        }
        sendNext()
    }

    /// The server has closed the connection because of a message that is too large for it. It was the largest of those that were
    /// not answered, or others were too large as well; it is not sent again, over which connection ever.
    private func endRefused(_ connection: Int) {
        let sent = pending.values.filter { $0.connection == connection }
        guard let call = sent.max(by: { $0.sentByteCount < $1.sentByteCount }) else { return }
        pending[call.number] = nil
        let error = MessageSizes.refused(call.name, call.sentByteCount, limit: options.serverMessageSize)
        call.finish(.failure(error))
    }

    private func endUnknown(_ call: PendingCall, _ error: TransportError) {
        pending[call.number] = nil
        let text = "\(call.name) was sent and not answered, so it may have run: \(error.message)"
        call.finish(.failure(TrebuchetError(.unknownOutcome, text)))
    }

    func callsUnderWay(number: Int) -> Int {
        pending.values.count { $0.connection == number } + hosted.count(over: number)
    }

    var needsConnection: Bool { !pending.isEmpty || streams.count > 0 }

    func connectionGivenUp(_ error: TransportError) {
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
