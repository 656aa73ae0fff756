import NodeSupport
import Networking
import Synchronization
import Transports
import Trebuchet
import TrebuchetClient

/// Reaches one of the nodes there are just now, another one at each attempt, as a balancer in front of them does.
struct NodeSwitchingTransport: LoopTransport {
    let nodes: @Sendable () -> [Node]

    var address: String { "the nodes" }
    var loop: any EventLoop { ReactorGroup.client }

    func open(_ request: ConnectionRequest, _ receiver: ConnectionReceiver) async throws {
        guard let address = try nodes().randomElement()?.address else {
            throw TransportError(.system, "there is no node")
        }
        try await TrebuchetTransport.webSocket(host: address.host, port: address.port).open(request, receiver)
    }
}
