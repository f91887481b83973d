/* SPDX-License-Identifier: Apache-2.0 */
/* Made by tests/scripts/make_adamw_data.py with PyTorch's AdamW; do not edit. */
#ifndef TESTS_DATA_OPTIM_ADAMW_H
#define TESTS_DATA_OPTIM_ADAMW_H

/* clang-format off */
enum { ADAMW_N = 23, ADAMW_STEPS = 4, ADAMW_CASES = 3 };
/* lr, beta1, beta2, eps, weight decay */
static const double adamw_case[ADAMW_CASES][5] = {
    { 0.001, 0.9, 0.999, 1e-08, 0.01 },
    { 0.05, 0.8, 0.95, 0.001, 0.0 },
    { 0.02, 0.95, 0.9, 1e-06, 0.3 },
};
static const float adamw_start[1][23] = {
    {
    -0x1.0a71f2p+0f, 0x1.d54d24p-1f, -0x1.4ddf70p+0f, -0x1.1c13e2p+0f, -0x1.3801d6p+0f,
    0x1.2ae756p+0f, -0x1.0eb140p+0f, 0x1.c5a69ap-1f, -0x1.9f3998p-1f, 0x1.58e8b0p-1f,
    -0x1.1f90c4p+0f, -0x1.7865c2p-4f, -0x1.0e6d36p-3f, -0x1.19a90ep-2f, -0x1.e146bep-3f,
    0x1.c0b5f6p+0f, -0x1.7aa894p-1f, -0x1.3e1156p+0f, -0x1.66e768p-3f, 0x1.65de36p-1f,
    -0x1.5f4eecp-1f, 0x1.70bdc2p-1f, 0x1.9207aap-3f,
    },
};
static const float adamw_grads[4][23] = {
    {
    -0x1.7c7c4ap-21f, -0x1.e3d744p-20f, -0x1.34a906p-20f, 0x1.92a3dcp-20f, 0x1.f166eap-17f,
    0x1.17f2bcp-15f, 0x1.16966ep-15f, -0x1.926cb6p-13f, -0x1.2405fep-15f, -0x1.caa2c4p-13f,
    -0x1.9e3644p-14f, -0x1.45c9bap-8f, -0x1.1ccffap-7f, -0x1.d5add4p-7f, -0x1.75f7cep-5f,
    0x1.09719cp-4f, 0x1.1d9e28p-3f, 0x1.f1458cp-3f, -0x1.e2c944p-1f, -0x1.6d165cp-1f,
    0x1.7420aap+2f, -0x1.158474p+2f, -0x1.34d962p-3f,
    },
    {
    0x1.73f470p-20f, -0x1.3833dcp-22f, -0x1.92e0d2p-20f, 0x1.a61f86p-21f, -0x1.59b6d4p-16f,
    0x1.44805ep-16f, 0x1.dfa520p-14f, -0x1.12c038p-14f, 0x1.2515c6p-13f, 0x1.69b4cep-11f,
    0x1.b334b2p-11f, -0x1.1955c8p-8f, 0x1.edd6c6p-8f, -0x1.b0aca4p-7f, -0x1.e291b2p-8f,
    -0x1.473f60p-9f, -0x1.e282bep-4f, 0x1.197828p-1f, -0x1.2fc6eap-3f, 0x1.394a20p-1f,
    0x1.239d3ap-5f, -0x1.1a8540p+2f, -0x1.8af202p+3f,
    },
    {
    0x1.10a630p-22f, 0x1.43f9f0p-21f, 0x1.98d228p-21f, 0x1.25e7a2p-18f, 0x1.5c4240p-18f,
    0x1.87ce06p-16f, -0x1.9b25d6p-16f, -0x1.078536p-13f, -0x1.91c9c0p-12f, 0x1.5554a8p-10f,
    -0x1.3a373ap-9f, 0x1.61e6acp-10f, 0x1.24b802p-8f, 0x1.9be896p-7f, 0x1.c0a524p-7f,
    0x1.91aba8p-4f, 0x1.3182b6p-4f, 0x1.80e9a0p-5f, 0x1.175f1cp-1f, -0x1.547b1ap-2f,
    -0x1.ab84d0p+1f, 0x1.a8c73ap+1f, -0x1.0f104cp+4f,
    },
    {
    -0x1.b39c38p-24f, 0x1.58562cp-19f, -0x1.6ef04cp-17f, 0x1.6a6cfep-17f, 0x1.0efc66p-15f,
    0x1.3bcac6p-17f, 0x1.2310cap-13f, -0x1.f671c4p-13f, 0x1.30d1eap-12f, -0x1.c6ca2ep-13f,
    0x1.1bb35ap-10f, -0x1.56e386p-11f, -0x1.488a6cp-7f, 0x1.9f3a0ep-9f, 0x1.4a71fcp-4f,
    0x1.4cf468p-6f, 0x1.fea21ap-7f, 0x1.3f2a12p-5f, -0x1.74a97ap-1f, -0x1.d7a598p+0f,
    0x1.e451fap-4f, -0x1.7b5bb8p+0f, 0x1.00042cp+3f,
    },
};
static const float adamw_last[3][23] = {
    {
    -0x1.0a6fa6p+0f, 0x1.d63b9cp-1f, -0x1.4d1114p+0f, -0x1.1cfc48p+0f, -0x1.384c9ap+0f,
    0x1.29eb1ap+0f, -0x1.0f7f90p+0f, 0x1.c78a0ep-1f, -0x1.9ec66cp-1f, 0x1.587f0ep-1f,
    -0x1.1f5474p+0f, -0x1.6b5986p-4f, -0x1.0c4f12p-3f, -0x1.172056p-2f, -0x1.dd7af4p-3f,
    0x1.bfdfdep+0f, -0x1.7b70d6p-1f, -0x1.3eedaep+0f, -0x1.61e310p-3f, 0x1.66cdb0p-1f,
    -0x1.604802p-1f, 0x1.72297ap-1f, 0x1.984838p-3f,
    },
    {
    -0x1.0a7308p+0f, 0x1.d55d08p-1f, -0x1.4dc896p+0f, -0x1.1c3594p+0f, -0x1.384138p+0f,
    0x1.299ea6p+0f, -0x1.114a3ap+0f, 0x1.d2d610p-1f, -0x1.9db5dep-1f, 0x1.49651cp-1f,
    -0x1.1d581cp+0f, 0x1.072becp-5f, -0x1.70c7b8p-4f, -0x1.588162p-3f, -0x1.3f5714p-3f,
    0x1.98d08ep+0f, -0x1.a021eep-1f, -0x1.68debap+0f, -0x1.e7fa5cp-5f, 0x1.94db26p-1f,
    -0x1.8ba224p-1f, 0x1.b53528p-1f, 0x1.66a126p-2f,
    },
    {
    -0x1.0461d0p+0f, 0x1.d6116ep-1f, -0x1.3c7d4cp+0f, -0x1.2134d2p+0f, -0x1.363ab4p+0f,
    0x1.10bd40p+0f, -0x1.17e596p+0f, 0x1.e0b674p-1f, -0x1.8d0604p-1f, 0x1.49a5aap-1f,
    -0x1.14677cp+0f, -0x1.8e12acp-6f, -0x1.b983c6p-4f, -0x1.be8cdcp-3f, -0x1.84e3ccp-3f,
    0x1.a5bbf4p+0f, -0x1.820b68p-1f, -0x1.4807b2p+0f, -0x1.eed3fap-4f, 0x1.6ffccep-1f,
    -0x1.6bc262p-1f, 0x1.852dfcp-1f, 0x1.00a2a8p-2f,
    },
};
static const float adamw_first_moment[3][23] = {
    {
    0x1.3abf3ap-24f, 0x1.4ed138p-23f, -0x1.4a49d8p-20f, 0x1.ba31dep-20f, 0x1.a148a0p-19f,
    0x1.d89cc4p-18f, 0x1.87df4ap-16f, -0x1.c9b3a8p-15f, 0x1.c3d570p-19f, 0x1.1c0992p-13f,
    -0x1.8e67f8p-15f, -0x1.56e430p-11f, -0x1.471aecp-11f, -0x1.5d572cp-11f, 0x1.604846p-8f,
    0x1.f7f948p-7f, 0x1.238234p-7f, 0x1.202c74p-4f, -0x1.abc140p-4f, -0x1.bb8ec4p-3f,
    0x1.1a97ecp-3f, -0x1.0bdf74p-1f, -0x1.bc41f0p+0f,
    },
    {
    0x1.0cb8bap-23f, 0x1.a077c4p-22f, -0x1.3ec924p-19f, 0x1.a21d00p-19f, 0x1.9e2942p-18f,
    0x1.82466cp-17f, 0x1.5f46f4p-15f, -0x1.92e394p-14f, 0x1.765178p-17f, 0x1.e42cb4p-13f,
    -0x1.29b510p-14f, -0x1.fe4d56p-11f, -0x1.3ecc44p-10f, -0x1.0cf8d6p-11f, 0x1.a06f14p-7f,
    0x1.ab2660p-6f, 0x1.d30ba2p-7f, 0x1.c4c67cp-4f, -0x1.63f6eap-3f, -0x1.aa5cb8p-2f,
    0x1.6d6818p-4f, -0x1.8c874cp-1f, -0x1.5a564cp+1f,
    },
    {
    0x1.502c66p-25f, 0x1.1dd4a0p-24f, -0x1.50f498p-21f, 0x1.c731b0p-21f, 0x1.a4b99cp-20f,
    0x1.049a54p-18f, 0x1.9eb752p-17f, -0x1.e8b834p-16f, 0x1.3436d0p-20f, 0x1.312f9ep-14f,
    -0x1.bd2df8p-16f, -0x1.89a12cp-12f, -0x1.515a52p-12f, -0x1.dce554p-12f, 0x1.39e600p-9f,
    0x1.1145c0p-7f, 0x1.46b06cp-8f, 0x1.42bb6cp-5f, -0x1.d7c834p-5f, -0x1.c61e38p-4f,
    0x1.91efb0p-4f, -0x1.34c8f0p-2f, -0x1.efaa08p-1f,
    },
};
static const float adamw_second_moment[3][23] = {
    {
    0x1.6714aep-49f, 0x1.71fb82p-47f, 0x1.169f6ep-43f, 0x1.384ac4p-43f, 0x1.e2409cp-40f,
    0x1.29f640p-39f, 0x1.2b300cp-35f, 0x1.f61e54p-34f, 0x1.14f29ep-32f, 0x1.37151ap-29f,
    0x1.05788cp-27f, 0x1.84efa6p-25f, 0x1.0f0f9ep-22f, 0x1.2585c0p-21f, 0x1.28343ep-17f,
    0x1.dceb9cp-17f, 0x1.478020p-15f, 0x1.7dce2cp-12f, 0x1.c6fcc4p-10f, 0x1.1f665cp-8f,
    0x1.6f8c2cp-5f, 0x1.a50102p-5f, 0x1.016c42p-1f,
    },
    {
    0x1.f7454ep-44f, 0x1.138d04p-41f, 0x1.b1d77ap-38f, 0x1.e35628p-38f, 0x1.68ce1cp-34f,
    0x1.a1a2d8p-34f, 0x1.bfcb84p-30f, 0x1.728c44p-28f, 0x1.a0e038p-27f, 0x1.c907dep-24f,
    0x1.85d2f0p-22f, 0x1.0c4a52p-19f, 0x1.8b18f4p-17f, 0x1.9e1a30p-16f, 0x1.becf62p-12f,
    0x1.58da84p-11f, 0x1.c72e3ap-10f, 0x1.0bcf2ap-6f, 0x1.469d76p-4f, 0x1.b5937cp-3f,
    0x1.fadf04p+0f, 0x1.28be22p+1f, 0x1.7b54f6p+4f,
    },
    {
    0x1.c00896p-43f, 0x1.07142cp-40f, 0x1.b068d0p-37f, 0x1.debeb4p-37f, 0x1.59ab28p-33f,
    0x1.7496f4p-33f, 0x1.accf9ap-29f, 0x1.5e3ac0p-27f, 0x1.90e490p-26f, 0x1.ac0daep-23f,
    0x1.72e87ap-21f, 0x1.d5e620p-19f, 0x1.705740p-16f, 0x1.73d24ep-15f, 0x1.b00790p-11f,
    0x1.3e19bap-10f, 0x1.91fbc0p-9f, 0x1.dd3c4cp-6f, 0x1.2bc5e2p-3f, 0x1.aac796p-2f,
    0x1.bc2d1ep+1f, 0x1.0a3becp+2f, 0x1.6493aep+5f,
    },
};
/* clang-format on */

#endif
