"""The bundled model in PyTorch, for training: Qwen3.5's hybrid of gated delta nets and gated attention, with MTP.

Parameters are one dictionary whose keys are the tensor names of a published checkpoint, so that saving is exporting. The
arithmetic between the two kernels that are not plain PyTorch (delta rule, attention) is a handful of functions of
tensors alone; each is compiled once and serves all layers.

A batch is one packed row: documents one after the other, each padded to a multiple of 64 (the delta rule works in chunks
of 64, so no chunk holds two documents). `cu` are the boundaries, `pos` the position of each token in its document.

MTP is trained as it runs: step d of the chain takes the step before's own output, and attends to the cache that the first
step left for the committed tokens plus the chain's own entries. Softmax attention over such a split set of keys is
flash attention over the packed part, merged with the few extra keys by means of the log of the softmax's sum; the same
sum given to flash attention's backward makes its gradients those of the whole.
"""
import json
import math
import os

import torch
import torch.nn.functional as F

CONFIG = {"hidden": 384, "ffn": 1024, "layers": 8, "interval": 4, "heads": 6, "kv_heads": 1, "head_dim": 256, "rotary": 0.25,
          "theta": 10000000.0, "gdn_k_heads": 2, "gdn_v_heads": 6, "gdn_dim": 128, "conv": 4, "vocab": 6144, "eps": 1e-6}
CHUNK = 64
STEM = "model.language_model."


def is_attention(config, layer):
    return (layer + 1) % config["interval"] == 0


# ---- parameters

def block_shapes(config, prefix, attention):
    c, hidden = config, config["hidden"]
    shapes = {"input_layernorm.weight": (hidden,), "post_attention_layernorm.weight": (hidden,),
              "mlp.gate_proj.weight": (c["ffn"], hidden), "mlp.up_proj.weight": (c["ffn"], hidden), "mlp.down_proj.weight": (hidden, c["ffn"])}
    if attention:
        q, kv = c["heads"] * c["head_dim"], c["kv_heads"] * c["head_dim"]
        shapes.update({"self_attn.q_proj.weight": (2 * q, hidden), "self_attn.k_proj.weight": (kv, hidden),
                       "self_attn.v_proj.weight": (kv, hidden), "self_attn.o_proj.weight": (hidden, q),
                       "self_attn.q_norm.weight": (c["head_dim"],), "self_attn.k_norm.weight": (c["head_dim"],)})
    else:
        k, v, n = c["gdn_k_heads"] * c["gdn_dim"], c["gdn_v_heads"] * c["gdn_dim"], c["gdn_v_heads"]
        shapes.update({"linear_attn.in_proj_qkv.weight": (2 * k + v, hidden), "linear_attn.in_proj_z.weight": (v, hidden),
                       "linear_attn.in_proj_b.weight": (n, hidden), "linear_attn.in_proj_a.weight": (n, hidden),
                       "linear_attn.conv1d.weight": (2 * k + v, 1, c["conv"]), "linear_attn.A_log": (n,), "linear_attn.dt_bias": (n,),
                       "linear_attn.norm.weight": (c["gdn_dim"],), "linear_attn.out_proj.weight": (hidden, v)})
    return {prefix + name: shape for name, shape in shapes.items()}


def shapes(config):
    hidden = config["hidden"]
    out = {STEM + "embed_tokens.weight": (config["vocab"], hidden), STEM + "norm.weight": (hidden,), "lm_head.weight": (config["vocab"], hidden)}
    for layer in range(config["layers"]):
        out.update(block_shapes(config, "%slayers.%d." % (STEM, layer), is_attention(config, layer)))
    out.update({"mtp.fc.weight": (hidden, 2 * hidden), "mtp.pre_fc_norm_embedding.weight": (hidden,),
                "mtp.pre_fc_norm_hidden.weight": (hidden,), "mtp.norm.weight": (hidden,)})
    out.update(block_shapes(config, "mtp.layers.0.", True))
    return out


def initial(name, shape, generator):
    """Norms start as the identity, what writes to the residual stream at zero, decays spread over time scales."""
    if name.endswith("A_log"):
        return torch.log(1 + 15 * torch.rand(shape, generator=generator))
    if name.endswith("dt_bias"):
        dt = torch.exp(torch.rand(shape, generator=generator) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
        return dt + torch.log(-torch.expm1(-dt))
    if name.endswith("linear_attn.norm.weight"):
        return torch.ones(shape)
    if len(shape) == 1 or name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")):
        return torch.zeros(shape)
    std = 0.5 if "embed_tokens" in name else 0.02 if name == "lm_head.weight" else 0.4 if "conv1d" in name else 0.6 / math.sqrt(shape[-1])
    return torch.randn(shape, generator=generator) * std


def create(config, seed=1, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return {n: initial(n, s, generator).to(device).requires_grad_() for n, s in shapes(config).items()}


# ---- arithmetic; every function is compiled on the device

def linear(x, w):
    return x @ w.to(x.dtype).T


def rms(x, eps=1e-6):
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def norm(x, w):
    return (rms(x) * (1.0 + w)).to(x.dtype)


def rotate(x, cos, sin):
    """x [T, heads, D]: pairs (i, i + half) of the first 2 * half dimensions."""
    half = cos.shape[-1]
    a, b, rest = x[..., :half].float(), x[..., half:2 * half].float(), x[..., 2 * half:]
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat([(a * cos - b * sin).to(x.dtype), (b * cos + a * sin).to(x.dtype), rest], -1)


def rope_table(config, pos):
    rot = int(config["head_dim"] * config["rotary"])
    inverse = config["theta"] ** (-torch.arange(0, rot, 2, device=pos.device, dtype=torch.float32) / rot)
    angle = pos.float()[:, None] * inverse
    return torch.cos(angle), torch.sin(angle)


def swiglu(x, norm_w, gate_w, up_w, down_w):
    h = norm(x, norm_w)
    return x + linear(F.silu(linear(h, gate_w)) * linear(h, up_w), down_w)


def attention_in(x, norm_w, q_w, k_w, v_w, q_norm, k_norm, cos, sin, heads, kv_heads):
    t, h = x.shape[0], norm(x, norm_w)
    dim = q_norm.shape[0]
    q, gate = linear(h, q_w).view(t, heads, 2 * dim).split(dim, -1)
    k, v = linear(h, k_w).view(t, kv_heads, dim), linear(h, v_w).view(t, kv_heads, dim)
    return rotate(norm(q, q_norm), cos, sin), rotate(norm(k, k_norm), cos, sin), v.contiguous(), gate.reshape(t, heads * dim)


def attention_out(x, o, gate, o_w, *mlp):
    y = o.reshape(gate.shape) * torch.sigmoid(gate.float()).to(o.dtype)
    return swiglu(x + linear(y, o_w), *mlp)


def shifted(x, by, pos):
    """The row `by` tokens earlier, zero before a document's start."""
    return torch.where((pos >= by)[:, None], F.pad(x[:x.shape[0] - by], (0, 0, by, 0)), 0.0) if by else x


def unit(x):
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.square().sum(-1, keepdim=True) + 1e-6)).to(x.dtype)


def delta_in(x, norm_w, qkv_w, z_w, b_w, a_w, conv_w, a_log, dt_bias, pos, k_heads, v_heads):
    t, h = x.shape[0], norm(x, norm_w)
    raw, z = linear(h, qkv_w), linear(h, z_w)
    taps = conv_w[:, 0].float()
    last = taps.shape[1] - 1
    mixed = F.silu(sum(shifted(raw, last - i, pos).float() * taps[:, i] for i in range(last + 1))).to(x.dtype)
    dim = raw.shape[1] // (2 * k_heads + v_heads)
    q, k, v = mixed.split([k_heads * dim, k_heads * dim, v_heads * dim], -1)
    beta = torch.sigmoid(linear(h, b_w).float())
    g = -torch.exp(a_log) * F.softplus(linear(h, a_w).float() + dt_bias)
    return unit(q.view(t, k_heads, dim)), unit(k.view(t, k_heads, dim)), v.reshape(t, v_heads, dim).contiguous(), g, beta, z


def delta_out(x, o, z, norm_w, out_w, *mlp):
    y = (rms(o) * norm_w * F.silu(z.float().view(o.shape))).to(x.dtype)
    return swiglu(x + linear(y.reshape(z.shape), out_w), *mlp)


def mtp_in(e, h, norm_e, norm_h, fc_w):
    return linear(torch.cat([norm(e, norm_e), norm(h, norm_h)], -1), fc_w)


def head_loss(h, head_w, target, weight):
    """Weighted sum of the losses and of the right guesses over chosen rows."""
    logits = linear(h, head_w).float()
    loss = F.cross_entropy(logits, target, reduction="none")
    return (loss * weight).sum(), ((logits.argmax(-1) == target) * weight).sum()


FUNCTIONS = ("attention_in", "attention_out", "delta_in", "delta_out", "mtp_in", "head_loss", "norm")


# ---- the two kernels

def delta_rule_plain(q, k, v, g, beta, cu):
    """The recurrence as it is defined, token after token: for tests and for machines without the kernel."""
    r = v.shape[1] // q.shape[1]
    q, k = q.float().repeat_interleave(r, 1) * q.shape[-1] ** -0.5, k.float().repeat_interleave(r, 1)
    out, starts = [], set(cu.tolist())
    for t in range(q.shape[0]):
        if t in starts:
            state = torch.zeros(v.shape[1], q.shape[2], v.shape[2], device=q.device)
        state = state * torch.exp(g[t])[:, None, None]
        u = beta[t][:, None] * (v[t].float() - torch.einsum("hkv,hk->hv", state, k[t]))
        state = state + k[t][:, :, None] * u[:, None]
        out.append(torch.einsum("hkv,hk->hv", state, q[t]))
    return torch.stack(out).to(v.dtype)


def attention_plain(q, k, v, cu, max_len, extras=()):
    """Causal attention inside documents; extras: (k, v) of one more key for each query."""
    t, heads, dim = q.shape
    r = heads // k.shape[1]
    document = torch.bucketize(torch.arange(t, device=q.device), cu[1:], right=True)
    mask = (document[:, None] == document[None]) & torch.ones(t, t, dtype=torch.bool, device=q.device).tril()
    scores = torch.einsum("qhd,khd->hqk", q.float(), k.float().repeat_interleave(r, 1)).masked_fill(~mask, -math.inf)
    scores = [scores] + [torch.einsum("qhd,qhd->hq", q.float(), ek.float().repeat_interleave(r, 1))[..., None] for ek, _ in extras]
    p = torch.softmax(torch.cat(scores, -1) * dim ** -0.5, -1)
    out = torch.einsum("hqk,khd->qhd", p[..., :t], v.float().repeat_interleave(r, 1))
    for i, (_, ev) in enumerate(extras):
        out = out + p[..., t + i].T[..., None] * ev.float().repeat_interleave(r, 1)
    return out.to(q.dtype)


class FlashWithExtras(torch.autograd.Function):
    """attention_plain by flash attention and a merge; see the head of this file."""

    @staticmethod
    def forward(ctx, q, k, v, cu, max_len, *extras):
        r, scale = q.shape[1] // k.shape[1], q.shape[2] ** -0.5
        wide_k, wide_v = k.repeat_interleave(r, 1), v.repeat_interleave(r, 1)
        out, lse, state, unused, _ = torch.ops.aten._flash_attention_forward(
            q, wide_k, wide_v, cu, cu, max_len, max_len, 0.0, True, False, scale=scale)
        if extras:
            logits = torch.stack([(q.float() * ek.float()).sum(-1).T * scale for ek in extras[0::2]])       # [n, heads, T]
            whole = torch.logsumexp(torch.cat([lse[None], logits]), 0)
            merged = out.float() * torch.exp(lse - whole).T[..., None]
            for logit, ev in zip(logits, extras[1::2]):
                merged = merged + torch.exp(logit - whole).T[..., None] * ev.float()
            out, lse = merged.to(q.dtype), whole
        ctx.save_for_backward(q, wide_k, wide_v, cu, out, lse, state, unused, *extras)
        ctx.max_len, ctx.r, ctx.scale = max_len, r, scale
        return out

    @staticmethod
    def backward(ctx, do):
        q, k, v, cu, out, lse, state, unused, *extras = ctx.saved_tensors
        do = do.contiguous()
        dq, dk, dv = torch.ops.aten._flash_attention_backward(
            do, q, k, v, out, lse.contiguous(), cu, cu, ctx.max_len, ctx.max_len, 0.0, True, state, unused, scale=ctx.scale)
        narrow = lambda x: x.view(x.shape[0], -1, ctx.r, x.shape[-1]).sum(2)
        more = []
        if extras:
            dq, do32 = dq.float(), do.float()
            delta = (do32 * out.float()).sum(-1)                                                             # [T, heads]
            for ek, ev in zip(extras[0::2], extras[1::2]):
                p = torch.exp((q.float() * ek.float()).sum(-1) * ctx.scale - lse.T)
                ds = (p * ((do32 * ev.float()).sum(-1) - delta) * ctx.scale)[..., None]
                dq = dq + ds * ek.float()
                more += [(ds * q.float()).sum(1, keepdim=True).to(ek.dtype), (p[..., None] * do32).sum(1, keepdim=True).to(ev.dtype)]
            dq = dq.to(q.dtype)
        return (dq, narrow(dk), narrow(dv), None, None, *more)


def attention_flash(q, k, v, cu, max_len, extras=()):
    """One key head only: the extras broadcast over the query heads."""
    return FlashWithExtras.apply(q, k, v, cu, max_len, *[x for pair in extras for x in pair])


def dqkwg(q, k, v, do, h, dh, w, g, dv, scale):
    """fla's chunk_bwd_dqkwg in plain PyTorch: gradients of q, k, w and the decay from those of chunks and states.

    Chunks of 64 tokens, none of which holds two documents; g is the cumulated decay in powers of two.
    """
    b, t, heads, dim = q.shape
    n, hv = t // CHUNK, v.shape[2]
    r = hv // heads
    cut = lambda x: x.reshape(n, CHUNK, -1, x.shape[-1]).transpose(1, 2)                                        # [n, heads, 64, D]
    wide = lambda x: cut(x).repeat_interleave(r, 1)
    q_, k_, v_, do_, dv_ = wide(q), wide(k), cut(v), cut(do), cut(dv)
    h_, dh_ = h.reshape(n, hv, *h.shape[-2:]).to(q.dtype), dh.reshape(n, hv, *dh.shape[-2:]).to(q.dtype)
    g_ = g.reshape(n, CHUNK, hv).transpose(1, 2).float()                                                        # [n, heads, 64]
    last = g_[..., -1:]
    dw = -(dv_ @ h_.mT)
    dg_last = (h_.float() * dh_.float()).sum((-1, -2)) * torch.exp2(last[..., 0])
    dq = (do_ @ h_.mT).float() * torch.exp2(g_)[..., None] * scale
    dk = (v_ @ dh_.mT).float() * torch.exp2(last - g_)[..., None]
    dg_last = dg_last + (dk * k_.float()).sum((-1, -2))
    decay = torch.exp2((g_[..., :, None] - g_[..., None, :]).tril()).tril()
    ds = ((do_ @ v_.mT).float() * decay * scale).to(q.dtype)
    dq = dq + (ds @ k_).float()
    dk = dk + (ds.mT @ q_).float()
    dg = (dq * q_.float()).sum(-1) - (dk * k_.float()).sum(-1)
    dg = torch.cat([dg[..., :-1], dg[..., -1:] + dg_last[..., None]], -1)
    back = lambda x: x.transpose(1, 2).reshape(b, t, -1, x.shape[-1])
    narrow = lambda x: x.view(n, heads, r, CHUNK, dim).sum(2)
    return back(narrow(dq)).to(q.dtype), back(narrow(dk)).to(k.dtype), back(dw).to(w.dtype), dg.transpose(1, 2).reshape(b, t, hv)


def delta_rule_fla(compiled=True):
    """fla's chunked kernel with dqkwg in the place of its own, which is wrong on Hopper with Triton 3.4 to 3.7.0."""
    import fla.ops.gated_delta_rule.chunk as chunk
    gradients = torch.compile(dqkwg, dynamic=False) if compiled else dqkwg

    def replaced(q, k, v, do, h, dh, w=None, g=None, g_gamma=None, dv=None, scale=None, state_v_first=False, **_):
        assert g is not None and w is not None and g_gamma is None and not state_v_first
        return gradients(q, k, v, do, h, dh, w, g, dv, scale)

    chunk.chunk_bwd_dqkwg = replaced

    wide = {}  # the last boundaries as 64-bit numbers: the kernel remembers its index table by the tensor's identity

    def rule(q, k, v, g, beta, cu):
        if wide.get("of") is not cu:
            wide.update(of=cu, cu=cu.long())
        return chunk.chunk_gated_delta_rule(q[None], k[None], v[None], g[None], beta[None].to(v.dtype), cu_seqlens=wide["cu"])[0][0]
    return rule


# ---- the model

class Model:
    """Forward over one packed row. `kernels`: the fast ones of a GPU; `compiled`: the rest too, worth it for training."""

    def __init__(self, params, config=None, kernels=False, compiled=False, dtype=torch.bfloat16):
        self.p, self.c, self.dtype = params, config or CONFIG, dtype
        table = globals()
        self.f = {n: torch.compile(table[n], dynamic=False) if compiled else table[n] for n in FUNCTIONS}
        self.attention = attention_flash if kernels else attention_plain
        self.delta_rule = delta_rule_fla(compiled) if kernels else delta_rule_plain

    def weights(self, prefix, names):
        return [self.p[prefix + n] for n in names]

    def mlp(self, prefix):
        return self.weights(prefix, ("post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"))

    def attention_block(self, prefix, x, rope, cu, max_len, cache=None, extras=()):
        """cache: (k, v) to attend to in the place of the own ones, which then are one more extra."""
        c = self.c
        q, k, v, gate = self.f["attention_in"](x, *self.weights(prefix, (
            "input_layernorm.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
            "self_attn.q_norm.weight", "self_attn.k_norm.weight")), *rope, c["heads"], c["kv_heads"])
        own = (k, v)
        o = self.attention(q, *(cache or own), cu, max_len, (*extras, own) if cache else ())
        return self.f["attention_out"](x, o, gate, self.p[prefix + "self_attn.o_proj.weight"], *self.mlp(prefix)), own

    def delta_block(self, prefix, x, pos, cu):
        c = self.c
        q, k, v, g, beta, z = self.f["delta_in"](x, *self.weights(prefix, (
            "input_layernorm.weight", "linear_attn.in_proj_qkv.weight", "linear_attn.in_proj_z.weight", "linear_attn.in_proj_b.weight",
            "linear_attn.in_proj_a.weight", "linear_attn.conv1d.weight", "linear_attn.A_log", "linear_attn.dt_bias")),
            pos, c["gdn_k_heads"], c["gdn_v_heads"])
        o = self.delta_rule(q, k, v, g, beta, cu)
        return self.f["delta_out"](x, o, z, *self.weights(prefix, ("linear_attn.norm.weight", "linear_attn.out_proj.weight")), *self.mlp(prefix))

    def embed(self, ids):
        return F.embedding(ids, self.p[STEM + "embed_tokens.weight"]).to(self.dtype)

    def trunk(self, ids, pos, cu, max_len):
        """Hidden states after the final norm, [T, hidden]."""
        x, rope = self.embed(ids), rope_table(self.c, pos)
        for layer in range(self.c["layers"]):
            prefix = "%slayers.%d." % (STEM, layer)
            x = self.attention_block(prefix, x, rope, cu, max_len)[0] if is_attention(self.c, layer) else self.delta_block(prefix, x, pos, cu)
        return self.f["norm"](x, self.p[STEM + "norm.weight"])

    def chain(self, hidden, ids, pos, cu, max_len, depth=3):
        """Outputs of the MTP chain after mtp.norm: step d at row p guesses token p + 1 + d, given the true tokens up to p + d."""
        outs, cache, extras = [], None, []
        for d in range(1, depth + 1):
            ahead = F.pad(ids[d:], (0, d))
            x = self.f["mtp_in"](self.embed(ahead), hidden, *self.weights("mtp.", (
                "pre_fc_norm_embedding.weight", "pre_fc_norm_hidden.weight", "fc.weight")))
            x, own = self.attention_block("mtp.layers.0.", x, rope_table(self.c, pos + d - 1), cu, max_len, cache, extras)
            if d == 1:
                cache = own
            else:
                extras.append(own)
            hidden = self.f["norm"](x, self.p["mtp.norm.weight"])
            outs.append(hidden)
        return outs

    def logits(self, hidden):
        return linear(hidden, self.p["lm_head.weight"])


# ---- files

def hf_config(config, dtype="bfloat16"):
    kinds = ["full_attention" if is_attention(config, i) else "linear_attention" for i in range(config["layers"])]
    end, pad = config["vocab"] - 31, config["vocab"] - 33
    section = int(config["head_dim"] * config["rotary"]) // 2
    text = {"attention_bias": False, "attention_dropout": 0.0, "attn_output_gate": True, "bos_token_id": pad, "dtype": dtype,
            "eos_token_id": end, "full_attention_interval": config["interval"], "head_dim": config["head_dim"], "hidden_act": "silu",
            "hidden_size": config["hidden"], "initializer_range": 0.02, "intermediate_size": config["ffn"], "layer_types": kinds,
            "linear_conv_kernel_dim": config["conv"], "linear_key_head_dim": config["gdn_dim"], "linear_num_key_heads": config["gdn_k_heads"],
            "linear_num_value_heads": config["gdn_v_heads"], "linear_value_head_dim": config["gdn_dim"], "mamba_ssm_dtype": "float32",
            "max_position_embeddings": 262144, "model_type": "qwen3_5_text", "mtp_num_hidden_layers": 1,
            "mtp_use_dedicated_embeddings": False, "num_attention_heads": config["heads"], "num_hidden_layers": config["layers"],
            "num_key_value_heads": config["kv_heads"], "pad_token_id": None, "partial_rotary_factor": config["rotary"],
            "rms_norm_eps": config["eps"], "rope_parameters": {
                "mrope_interleaved": True, "mrope_section": [section - 2 * (section // 3), section // 3, section // 3],
                "partial_rotary_factor": config["rotary"], "rope_theta": int(config["theta"]), "rope_type": "default"},
            "tie_word_embeddings": False, "use_cache": True, "vocab_size": config["vocab"]}
    return {"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5", "text_config": text, "tie_word_embeddings": False}


def write_safetensors(path, tensors):
    """name -> bf16 tensor; the format is a length, a JSON header and the bytes."""
    header, at, parts = {}, 0, []
    for name, x in tensors.items():
        raw = x.detach().to(torch.bfloat16).cpu().contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        parts.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for raw in parts:
            f.write(raw)


def read_safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        body = bytearray(f.read())
    out = {}
    for name, entry in header.items():
        if name != "__metadata__":
            a, b = entry["data_offsets"]
            assert entry["dtype"] == "BF16", name
            out[name] = torch.frombuffer(body[a:b], dtype=torch.bfloat16).view(entry["shape"]).float()
    return out


def save(folder, params, config, shard_bytes=15 << 20):
    """A checkpoint directory in shards; a machine may let out only small files."""
    os.makedirs(folder, exist_ok=True)
    shards, size = [{}], 0
    for name, x in params.items():
        if size + 2 * x.numel() > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = x
        size += 2 * x.numel()
    where = {}
    for i, shard in enumerate(shards):
        file = "model-%05d-of-%05d.safetensors" % (i + 1, len(shards))
        write_safetensors(os.path.join(folder, file), shard)
        where.update(dict.fromkeys(shard, file))
    total = sum(2 * x.numel() for x in params.values())
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump({"metadata": {"total_size": total}, "weight_map": where}, f, indent=1)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(hf_config(config), f, indent=1)
    generation = {"bos_token_id": config["vocab"] - 33, "do_sample": False, "eos_token_id": [config["vocab"] - 31, config["vocab"] - 33],
                  "pad_token_id": config["vocab"] - 33}
    with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as f:
        json.dump(generation, f, indent=1)


def load(folder, device="cpu"):
    out = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            out.update(read_safetensors(os.path.join(folder, file)))
    return {n: x.to(device).requires_grad_() for n, x in out.items()}
