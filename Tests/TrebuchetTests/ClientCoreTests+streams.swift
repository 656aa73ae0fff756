import Networking
import Platform
import Synchronization
import TestSupport
import Testing
import TrebuchetTesting
import TrebuchetWire

@testable import Trebuchet
@testable import TrebuchetActors
@testable import TrebuchetClient

/// Streams of a client, over connections that come and go.
extension ClientCoreTests {
    func observe(_ rig: Rig, _ name: String = "observeState") -> EncodedStream {
        rig.core.observe(StreamTarget(actorID: "a", name: name))
    }

    func text(_ stream: EncodedStream?) -> String? {
        stream?.relay.currentValue.update.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("a stream is asked for, taken up over another connection, and ended when nobody reads it")
    func streams() async throws {
        let (rig, link) = (Rig(), Link())
        await rig.activateLink(link, number: 1)
        var stream: EncodedStream? = observe(rig)
        #expect(await eventually { link.all.count == 2 })
        #expect(
            link.all.last
                == #"{"type":"invocation","payload":{"callID":"1","actorID":"a","targetIdentifier":"observeState"}}"#)
        await rig.receive(
            #"{"type":"streamStart","payload":{"streamID":"s1","callID":"1","actorID":"a","targetIdentifier":"observeState","epoch":"e"}}"#
        )
        await rig.receive(#"{"type":"streamData","payload":{"streamID":"s1","sequenceNumber":4,"data":[1]}}"#)
        #expect(text(stream) == "[1]")
        // Of another connection it is no matter.
        await rig.receive(
            #"{"type":"streamData","payload":{"streamID":"s1","sequenceNumber":5,"data":[2]}}"#, over: 7)
        #expect(text(stream) == "[1]")
        await rig.receive(
            #"{"type":"streamData","payload":{"streamID":"s1","sequenceNumber":5,"base":4,"patch":[{"op":"add","path":"/-","value":3}]}}"#
        )
        #expect(text(stream) == "[1,3]")
        // What cannot be made out is asked for anew.
        await rig.receive(
            #"{"type":"streamData","payload":{"streamID":"s1","sequenceNumber":9,"base":8,"patch":[]}}"#)
        #expect(link.all.suffix(2).first?.contains(#""type":"streamEnd","payload":{"streamID":"s1""#) == true)
        #expect(link.all.last?.contains(#""type":"invocation""#) == true)
        let second = Link()
        await rig.activateLink(second, number: 2)
        #expect(second.all.count == 2)
        #expect(second.all.last?.contains(#""type":"invocation""#) == true)
        await rig.receive(
            #"{"type":"streamStart","payload":{"streamID":"s1","callID":"1","actorID":"a","targetIdentifier":"observeState","epoch":"e"}}"#,
            over: 2)
        stream = nil
        #expect(await eventually { second.all.count == 3 })
        #expect(second.all.last?.contains(#""type":"streamEnd""#) == true)
        // One that nobody wants any more is sent away again.
        await rig.receive(
            #"{"type":"streamStart","payload":{"streamID":"s2","callID":"1","actorID":"a","targetIdentifier":"observeState","epoch":"e"}}"#,
            over: 2)
        #expect(second.all.last?.contains(#""streamID":"s2""#) == true && second.all.count == 4)
    }

    @Test(
        "a stream ends as its server says, or with the answer to its beginning",
        arguments: [
            (#"{"type":"streamEnd","payload":{"streamID":"s1","reason":"completed"}}"#, StreamOutcome.completed),
            (
                #"{"type":"streamEnd","payload":{"streamID":"s1","reason":"actorTerminated"}}"#,
                .failed(TrebuchetError(.actorNotFound, "the actor no longer exists"))
            ),
            (
                #"{"type":"streamError","payload":{"streamID":"s1","errorMessage":"no","code":"unauthorized"}}"#,
                .failed(TrebuchetError(.unauthorized, "no"))
            ),
            (
                #"{"type":"streamError","payload":{"streamID":"s1","errorMessage":"no"}}"#,
                .failed(TrebuchetError(.internal, "no"))
            ),
            (
                #"{"type":"response","payload":{"callID":"1","error":{"code":"unavailable","message":"no"}}}"#,
                .failed(TrebuchetError(.unavailable, "no"))
            ),
        ] as [(String, StreamOutcome)])
    func ends(message: String, outcome: StreamOutcome) async throws {
        let (rig, link) = (Rig(), Link())
        await rig.activateLink(link, number: 1)
        let stream = observe(rig)
        #expect(await eventually { link.all.count == 2 })
        await rig.receive(
            #"{"type":"streamStart","payload":{"streamID":"s1","callID":"1","actorID":"a","targetIdentifier":"observeState","epoch":"e"}}"#
        )
        #expect(stream.relay.currentValue.outcome == nil)
        await rig.receive(message)
        #expect(stream.relay.currentValue.outcome == outcome)
        await rig.on { $0.connectionGivenUp(TransportError(.closed, "gone")) }
        #expect(stream.relay.currentValue.outcome == outcome)
    }

    @Test("when there will be no connection, streams end and calls that wait fail")
    func givenUp() async throws {
        let (rig, link) = (Rig(), Link())
        await rig.activateLink(link, number: 1)
        await rig.terms("\"callsPerConnection\":1")
        let stream = observe(rig)
        #expect(await eventually { link.all.count == 2 })
        let sent = rig.call("1")
        #expect(await eventually { link.calls == ["1"] })
        let waiting = rig.call("2")
        #expect(await eventually { await rig.on { $0.callsUnderWay(number: 0) } == 1 })
        await rig.on { $0.connectionGivenUp(TransportError(.refused, "gone")) }
        #expect(await failure(waiting) == TrebuchetError(.unavailable, "gone"))
        #expect(stream.relay.currentValue.outcome == .failed(TrebuchetError(.unavailable, "gone")))
        #expect(await rig.on { $0.callsUnderWay(number: 1) } == 1)
        await rig.answer(2)
        _ = try await sent.value
    }

    @Test("clients of one address have one server when the address says which")
    func addresses() {
        func core(_ name: String, _ isAddressed: Bool) -> ClientCore {
            ClientCore(
                loop: ReactorGroup.client, options: TrebuchetClient.Options(), peerName: name,
                addressIdentifiesServer: isAddressed)
        }
        #expect(core("a", true).reachesSameAddress(as: core("a", true)))
        #expect(!core("a", true).reachesSameAddress(as: core("b", true)))
        #expect(!core("a", true).reachesSameAddress(as: core("a", false)))
        #expect(!core("a", false).reachesSameAddress(as: core("a", true)))
        #expect(!core("a", false).reachesSameAddress(as: core("a", false)))
    }
}
