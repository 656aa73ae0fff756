import Trebuchet
import TrebuchetServices

/// The services that `serve --services` hosts beside the example actors.
struct HostedServices {
    static let options = [
        OptionSpec(
            "--services", "NAMES", "services to host too, separated by commas: \(known.joined(separator: ", "))")
    ]

    private static let known = [RoomHost.name, CollectionHost.name]

    let names: [String]

    init(_ arguments: ParsedArguments) throws(UsageError) {
        names = try Self.names(arguments.string("--services") ?? "")
    }

    /// What the server is made with.
    var access: AccessPolicy {
        var access = AccessPolicy.open
        access.identifiesCallers = !names.isEmpty
        return access
    }

    func expose(on server: TrebuchetServer, store: any StateStore) {
        if names.contains(RoomHost.name) { RoomHost.expose(on: server) }
        if names.contains(CollectionHost.name) { CollectionHost.expose(on: server, store: store) }
    }

    private static func names(_ list: String) throws(UsageError) -> [String] {
        var names: [String] = []
        for name in list.split(separator: ",").map(String.init) where !names.contains(name) {
            guard known.contains(name) else {
                let hint = NearestMatch.find(name, in: known).map { "; did you mean '\($0)'?" } ?? ""
                throw UsageError("--services: there is no service '\(name)'\(hint)")
            }
            names.append(name)
        }
        return names
    }
}
