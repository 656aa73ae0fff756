import Testing

@testable import Trebuchet
@testable import TrebuchetNodes

/// Detection of lost messages between nodes.
@Suite struct PeerStateTests {
    private typealias Epochs = NodeMessage.Epochs
    private typealias Arrival = PeerState.ReceiveAction

    private func receive(_ peer: inout PeerState, _ number: UInt64, _ epochs: Epochs) -> Arrival {
        peer.receive(number, epochs)
    }

    @Test("message numbers are consecutive within an epoch and start at 1; messages after a gap count as late")
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
        // Messages lost before the first one that arrives.
        var other = PeerState(epoch: 2)
        #expect(receive(&other, 2, Epochs(sender: 4, receiver: 0)) == Arrival(hasGap: true, isLate: true))
    }

    @Test("a peer's report of a loss ends channels once, and the peer's earlier messages are late")
    func lossAtPeer() {
        var peer = PeerState(epoch: 2)
        #expect(receive(&peer, 1, Epochs(sender: 4, receiver: 0)) == Arrival())
        #expect(receive(&peer, 5, Epochs(sender: 7, receiver: 2, last: 4)) == Arrival(endsChannels: true))
        #expect(receive(&peer, 6, Epochs(sender: 7, receiver: 2, last: 4)) == Arrival())
        #expect(receive(&peer, 2, Epochs(sender: 4, receiver: 2)) == Arrival(isLate: true))
        #expect(receive(&peer, 7, Epochs(sender: 7, receiver: 2, last: 4)) == Arrival())
        // Also when nothing was received before its loss: channels to it may have been opened.
        var other = PeerState(epoch: 2)
        #expect(receive(&other, 3, Epochs(sender: 5, receiver: 2, last: 2)) == Arrival(endsChannels: true))
    }

    @Test("messages sent without knowledge of this node's loss are late, until the peer knows of it")
    func ownLoss() {
        var peer = PeerState(epoch: 2)
        #expect(receive(&peer, 1, Epochs(sender: 4, receiver: 0)) == Arrival())
        peer.startEpoch(5)
        #expect(receive(&peer, 2, Epochs(sender: 4, receiver: 2)) == Arrival(isLate: true))
        // A peer that has received nothing so far does not know of it either.
        #expect(receive(&peer, 3, Epochs(sender: 4, receiver: 0)) == Arrival(isLate: true))
        #expect(receive(&peer, 4, Epochs(sender: 4, receiver: 5)) == Arrival())
    }

    @Test("a loss is reported by a separate message, until another message has reported it")
    func epochMessages() {
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
        // The message could not be sent.
        begins = peer.beginSendingEpoch()
        let again = peer.next(100)
        #expect(begins && again?.epochs == first?.epochs)
        peer.didDeliver(Epochs(sender: 5, receiver: 0))
        end = peer.next(100)
        begins = peer.beginSendingEpoch()
        #expect(end == nil && !begins)
        // The peer does not know of it all the same.
        let arrival = peer.receive(1, Epochs(sender: 2, receiver: 2))
        begins = peer.beginSendingEpoch()
        #expect(arrival.isLate && begins)
        // An earlier report does not cover a later loss.
        peer.startEpoch(7)
        peer.didDeliver(Epochs(sender: 5, receiver: 0))
        begins = peer.beginSendingEpoch()
        #expect(!begins && peer.isSending)
        let last = peer.next(100)
        #expect(last?.epochs.sender == 7)
    }

    @Test("a report of a loss says which messages were not late, and its receiver knows the requests in later ones")
    func acceptedMessages() {
        var (peer, other) = (PeerState(epoch: 2), PeerState(epoch: 4))
        for channelID in [1, 1, 2] as [UInt64] {
            _ = peer.enqueueFrames([NodeFrame(.toOwner, channelID: channelID)], nil)
            guard let message = peer.next(1) else { return }
            _ = other.receive(message.number, message.epochs)
        }
        other.startEpoch(7)
        _ = peer.enqueueFrames([NodeFrame(.client, channelID: 2), NodeFrame(.toOwner, channelID: 2)], nil)
        while let message = peer.next(1) {
            #expect(other.receive(message.number, message.epochs).isLate)
        }
        // Reported with each message, until the peer knows it.
        for _ in 0..<2 {
            _ = other.beginSendingEpoch()
            #expect(other.next(100)?.waiting.map(\.frame) == [.allEnded(accepted: 3)])
        }
        #expect(Array(peer.requests(after: 3)) == [2])
        #expect(Array(peer.requests(after: 0)) == [1, 1, 2, 2])
        // The channels have ended.
        peer.clear()
        #expect(Array(peer.requests(after: 0)).isEmpty)
        // A node that has accepted nothing says nothing: it may have removed what it knew of the peer.
        var fresh = PeerState(epoch: 2)
        _ = fresh.receive(8, NodeMessage.Epochs(sender: 4, receiver: 0))
        fresh.startEpoch(3)
        _ = fresh.beginSendingEpoch()
        #expect(fresh.next(100)?.waiting.isEmpty == true)
    }

    @Test("a message without frames reveals that the previous one is missing")
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

    @Test("queued frames are sent in order, a limited number at a time, and are counted")
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
        // A frame over the limit is sent alone.
        sent += peer.next(1)?.waiting.map(\.frame) ?? []
        #expect(sent == Array(frames[..<4]))
        peer.remove { $0.frame.channelID == 0 }
        #expect(peer.waitingBytes == 60 && peer.waiting.map(\.frame) == [frames[5], frames[7], frames[9]])
        let rest = peer.clear()
        let end = peer.next(100)
        #expect(rest.count == 3 && peer.waitingBytes == 0 && end == nil && !peer.isSending)
    }
}
