import Testing

@testable import Trebuchet

/// What a node knows of lost messages.
@Suite struct PeerStateTests {
    private typealias Epochs = NodeMessage.Epochs
    private typealias Arrival = PeerState.ReceiveAction

    private func receive(_ peer: inout PeerState, _ number: UInt64, _ epochs: Epochs) -> Arrival {
        peer.receive(number, epochs)
    }

    @Test("each message has the next number, the first of an epoch too; a gap makes what it brings late")
    func gaps() {
        var peer = PeerState(epoch: 2)
        #expect(receive(&peer, 1, Epochs(sender: 4, receiver: 0)) == Arrival())
        #expect(receive(&peer, 2, Epochs(sender: 4, receiver: 2)) == Arrival())
        #expect(receive(&peer, 4, Epochs(sender: 4, receiver: 2)) == Arrival(hasGap: true, isLate: true))
        #expect(receive(&peer, 5, Epochs(sender: 4, receiver: 2)) == Arrival())
        #expect(
            receive(&peer, 9, Epochs(sender: 7, receiver: 2, last: 7))
                == Arrival(endsChannels: true, hasGap: true, isLate: true))
        #expect(receive(&peer, 10, Epochs(sender: 7, receiver: 2, last: 7)) == Arrival())
        // What was lost before the first that comes at all.
        var other = PeerState(epoch: 2)
        #expect(receive(&other, 2, Epochs(sender: 4, receiver: 0)) == Arrival(hasGap: true, isLate: true))
    }

    @Test("who says that it has lost something ends lines, once, and what it sent before is late")
    func theirLoss() {
        var peer = PeerState(epoch: 2)
        #expect(receive(&peer, 1, Epochs(sender: 4, receiver: 0)) == Arrival())
        #expect(receive(&peer, 5, Epochs(sender: 7, receiver: 2, last: 4)) == Arrival(endsChannels: true))
        #expect(receive(&peer, 6, Epochs(sender: 7, receiver: 2, last: 4)) == Arrival())
        #expect(receive(&peer, 2, Epochs(sender: 4, receiver: 2)) == Arrival(isLate: true))
        #expect(receive(&peer, 7, Epochs(sender: 7, receiver: 2, last: 4)) == Arrival())
        // Also where nothing was heard of before its loss: lines may have been opened to it.
        var other = PeerState(epoch: 2)
        #expect(receive(&other, 3, Epochs(sender: 5, receiver: 2, last: 2)) == Arrival(endsChannels: true))
    }

    @Test("what is sent without knowing of this node's loss is late, until the other one knows")
    func ownLoss() {
        var peer = PeerState(epoch: 2)
        #expect(receive(&peer, 1, Epochs(sender: 4, receiver: 0)) == Arrival())
        peer.startEpoch(5)
        #expect(receive(&peer, 2, Epochs(sender: 4, receiver: 2)) == Arrival(isLate: true))
        // Nor does one know who has heard nothing so far.
        #expect(receive(&peer, 3, Epochs(sender: 4, receiver: 0)) == Arrival(isLate: true))
        #expect(receive(&peer, 4, Epochs(sender: 4, receiver: 5)) == Arrival())
    }

    @Test("a loss is told of by a message of its own, until one is sent that tells it")
    func telling() {
        var peer = PeerState(epoch: 2)
        var begins = peer.beginSendingEpoch()
        #expect(!begins)
        peer.startEpoch(5)
        begins = peer.beginSendingEpoch()
        #expect(begins && peer.isSending)
        let first = peer.next(100)
        #expect(first?.number == 1 && first?.epochs == Epochs(sender: 5, receiver: 0) && first?.waiting.isEmpty == true)
        var end = peer.next(100)
        #expect(end == nil && !peer.isSending)
        // It could not be sent.
        begins = peer.beginSendingEpoch()
        let again = peer.next(100)
        #expect(begins && again?.epochs == first?.epochs)
        peer.didDeliver(Epochs(sender: 5, receiver: 0))
        end = peer.next(100)
        begins = peer.beginSendingEpoch()
        #expect(end == nil && !begins)
        // The other one does not know it all the same.
        let arrival = peer.receive(1, Epochs(sender: 2, receiver: 2))
        begins = peer.beginSendingEpoch()
        #expect(arrival.isLate && begins)
        // One of before tells nothing of a later loss.
        peer.startEpoch(7)
        peer.didDeliver(Epochs(sender: 5, receiver: 0))
        begins = peer.beginSendingEpoch()
        #expect(!begins && peer.isSending)
        let last = peer.next(100)
        #expect(last?.epochs.sender == 7)
    }

    @Test("a message without frames shows that the last one is missing")
    func checks() {
        var (peer, other) = (PeerState(epoch: 2), PeerState(epoch: 2))
        var arrivals: [Arrival] = []
        for isLost in [false, true, false] {
            let begins = peer.beginCheck()
            let again = peer.beginCheck()
            #expect(begins && !again)
            while let message = peer.next(100) {
                if !isLost { arrivals.append(other.receive(message.number, message.epochs)) }
            }
        }
        #expect(arrivals == [Arrival(), Arrival(hasGap: true, isLate: true)])
    }

    @Test("what waits goes in order, so much at a time, and is counted")
    func waiting() {
        var peer = PeerState(epoch: 2)
        let frames = (0..<10).map {
            NodeFrame(.toOwner, channelID: UInt64($0 % 2), [UInt8](repeating: UInt8($0), count: 7))
        }
        let begins = [peer.enqueueFrames(Array(frames[..<6]), nil), peer.enqueueFrames(Array(frames[6...]), nil)]
        #expect(begins == [true, false] && peer.waitingBytes == 200)
        var sent: [NodeFrame] = []
        sent += peer.next(60)?.waiting.map(\.frame) ?? []
        #expect(sent == Array(frames[..<3]) && peer.waitingBytes == 140)
        // More than fits goes alone.
        sent += peer.next(1)?.waiting.map(\.frame) ?? []
        #expect(sent == Array(frames[..<4]))
        peer.remove { $0.frame.channelID == 0 }
        #expect(peer.waitingBytes == 60 && peer.waiting.map(\.frame) == [frames[5], frames[7], frames[9]])
        let rest = peer.clear()
        let end = peer.next(100)
        #expect(rest.count == 3 && peer.waitingBytes == 0 && end == nil && !peer.isSending)
    }
}
