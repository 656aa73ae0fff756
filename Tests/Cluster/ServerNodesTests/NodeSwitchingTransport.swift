import NodeSupport
import Networking
import Synchronization
import Transports
import Trebuchet
import TrebuchetClient

/// Connects to one of the current nodes, to another one at each attempt, as behind a load balancer.
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
