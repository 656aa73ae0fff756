/// What a client has sent as a mutation.
enum ReadMutation {
    case mutation(DocumentMutation)
    /// It makes no sense.
    case refused(MutationOutcome)

    var targets: [LinkTarget] {
        if case .mutation(let mutation) = self { mutation.writes.compactMap(\.command.target) } else { [] }
    }
}
