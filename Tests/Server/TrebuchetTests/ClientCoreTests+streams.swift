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

/// Streams of a client over changing connections.
extension ClientCoreTests {
    func observe(_ rig: Rig, _ name: String = "observeState") -> EncodedStream {
        rig.core.observe(StreamTarget(actorID: "a", name: name))
    }

    func text(_ stream: EncodedStream?) -> String? {
        stream?.relay.currentValue.update.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("a stream is requested, resumed over another connection, and ended when its last reader leaves")
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
        // Messages of another connection are ignored.
        await rig.receive(
            #"{"type":"streamData","payload":{"streamID":"s1","sequenceNumber":5,"data":[2]}}"#, over: 7)
        #expect(text(stream) == "[1]")
        await rig.receive(
            #"{"type":"streamData","payload":{"streamID":"s1","sequenceNumber":5,"base":4,"patch":[{"op":"add","path":"/-","value":3}]}}"#
        )
        #expect(text(stream) == "[1,3]")
        // An update that cannot be decoded makes the client request the stream again.
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
        // A stream without readers is ended at the server.
        await rig.receive(
            #"{"type":"streamStart","payload":{"streamID":"s2","callID":"1","actorID":"a","targetIdentifier":"observeState","epoch":"e"}}"#,
            over: 2)
        #expect(second.all.last?.contains(#""streamID":"s2""#) == true && second.all.count == 4)
    }

    @Test(
        "a stream ends when its server says so, or with the response to its start request",
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
        await rig.on { $0.connectionAbandoned(TransportError(.closed, "gone")) }
        #expect(stream.relay.currentValue.outcome == outcome)
    }

    @Test("when the client gives up, streams end and waiting calls fail")
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
        await rig.on { $0.connectionAbandoned(TransportError(.refused, "gone")) }
        #expect(await failure(waiting) == TrebuchetError(.unavailable, "gone"))
        #expect(stream.relay.currentValue.outcome == .failed(TrebuchetError(.unavailable, "gone")))
        #expect(await rig.on { $0.callsUnderWay(number: 1) } == 1)
        await rig.answer(2)
        _ = try await sent.value
    }

    @Test("clients of one address share one server when the address identifies it")
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
